// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/entry_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <urcu/urcu-memb.h>

#include <urcu/call-rcu.h>
#include <urcu/list.h>
#include <urcu/rculfhash.h>

#include "common/check.h"

namespace margay::c_sma {
namespace {

// Each thread that touches a table is one of liburcu's readers until it ends.
struct Registration {
  Registration() { urcu_memb_register_thread(); }
  ~Registration() { urcu_memb_unregister_thread(); }
};

class ReadLock {
 public:
  ReadLock() {
    static thread_local const Registration registration;
    urcu_memb_read_lock();
  }
  ~ReadLock() { urcu_memb_read_unlock(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
};

// Frees the object once no reader can hold it.
template <class T>
void retire(T* object) {
  struct Retired {
    rcu_head head;
    T* object;
  };
  auto* retired = new Retired{{}, object};
  urcu_memb_call_rcu(&retired->head, [](rcu_head* head) {
    auto* r = reinterpret_cast<Retired*>(head);  // head is the first member
    delete r->object;
    delete r;
  });
}

unsigned long hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }

// A link of a liburcu structure, and what it belongs to.
template <class Link, class Owner>
struct Linked {
  Link link = {};  // first, so that the link's address is this one's
  Owner* owner = nullptr;
  static Owner* owner_of(Link* l) { return reinterpret_cast<Linked*>(l)->owner; }
};

struct Service {
  explicit Service(std::string id) : cs_id(std::move(id)) {
    node.owner = this;
    CDS_INIT_LIST_HEAD(&slots);
  }
  const std::string cs_id;
  Linked<cds_lfht_node, Service> node;
  cds_list_head slots;
};

cds_lfht* new_table(size_t expected) {
  const size_t buckets = std::bit_ceil(std::clamp<size_t>(expected, 16, 1 << 20));
  cds_lfht* table = cds_lfht_new_flavor(buckets, buckets, buckets, 0, &urcu_memb_flavor, nullptr);
  MARGAY_CHECK(table != nullptr);
  return table;
}

}  // namespace

class EntryTable::Slot {
 public:
  Slot(CacheEntry e, Service* s) : id(e.id), service(s), entry(new CacheEntry(std::move(e))) {
    by_csci.owner = this;
    of_service.owner = this;
  }
  ~Slot() { delete entry; }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  const std::shared_ptr<const SourceId> id;
  Linked<cds_lfht_node, Slot> by_csci;
  Linked<cds_list_head, Slot> of_service;
  Service* const service;
  CacheEntry* entry;  // published: the writer replaces it
};

struct EntryTable::Tables {
  using BySci = Linked<cds_lfht_node, Slot>;
  using ByService = Linked<cds_lfht_node, Service>;

  explicit Tables(size_t expected) : slots(new_table(expected)), services(new_table(expected / 16)) {}
  ~Tables() {
    MARGAY_CHECK(cds_lfht_destroy(slots, nullptr) == 0);
    MARGAY_CHECK(cds_lfht_destroy(services, nullptr) == 0);
  }

  Slot* slot(std::string_view csci_id) const {
    cds_lfht_iter at;
    const auto match = [](cds_lfht_node* node, const void* key) {
      return static_cast<int>(BySci::owner_of(node)->id->csci_id == *static_cast<const std::string_view*>(key));
    };
    cds_lfht_lookup(slots, hash_of(csci_id), match, &csci_id, &at);
    cds_lfht_node* node = cds_lfht_iter_get_node(&at);
    return node == nullptr ? nullptr : BySci::owner_of(node);
  }
  Service* service(std::string_view cs_id) const {
    cds_lfht_iter at;
    const auto match = [](cds_lfht_node* node, const void* key) {
      return static_cast<int>(ByService::owner_of(node)->cs_id == *static_cast<const std::string_view*>(key));
    };
    cds_lfht_lookup(services, hash_of(cs_id), match, &cs_id, &at);
    cds_lfht_node* node = cds_lfht_iter_get_node(&at);
    return node == nullptr ? nullptr : ByService::owner_of(node);
  }

  cds_lfht* slots;
  cds_lfht* services;
};

EntryTable::EntryTable(size_t expected) : tables_(std::make_unique<Tables>(expected)) {}

EntryTable::~EntryTable() {
  std::vector<Slot*> left;
  {
    const ReadLock lock;
    cds_lfht_iter at;
    cds_lfht_first(tables_->slots, &at);
    for (; cds_lfht_iter_get_node(&at) != nullptr; cds_lfht_next(tables_->slots, &at)) {
      left.push_back(Tables::BySci::owner_of(cds_lfht_iter_get_node(&at)));
    }
  }
  for (Slot* slot : left) remove(slot);
  urcu_memb_barrier();
}

EntryTable::Slot* EntryTable::add(CacheEntry entry) {
  const ReadLock lock;
  MARGAY_CHECK(tables_->slot(entry.id->csci_id) == nullptr);
  Service* service = tables_->service(entry.id->cs_id);
  if (service == nullptr) {
    service = new Service(entry.id->cs_id);
    cds_lfht_add(tables_->services, hash_of(service->cs_id), &service->node.link);
  }
  auto* slot = new Slot(std::move(entry), service);
  cds_list_head* link = &slot->of_service.link;
  cds_list_head* head = &service->slots;
  link->next = head->next;
  link->prev = head;
  head->next->prev = link;
  rcu_assign_pointer(head->next, link);  // pairs with for_each_of's rcu_dereference
  cds_lfht_add(tables_->slots, hash_of(slot->id->csci_id), &slot->by_csci.link);
  return slot;
}

void EntryTable::replace(Slot* slot, CacheEntry entry) {
  MARGAY_DCHECK(slot->id->csci_id == entry.id->csci_id && slot->id->cs_id == entry.id->cs_id);
  CacheEntry* old = slot->entry;
  rcu_assign_pointer(slot->entry, new CacheEntry(std::move(entry)));  // pairs with the readers' rcu_dereference
  retire(old);
}

void EntryTable::remove(Slot* slot) {
  const ReadLock lock;
  MARGAY_CHECK(cds_lfht_del(tables_->slots, &slot->by_csci.link) == 0);
  cds_list_head* link = &slot->of_service.link;
  link->next->prev = link->prev;
  rcu_assign_pointer(link->prev->next, link->next);  // a reader that stands on it still finds its way on
  Service* service = slot->service;
  retire(slot);
  if (cds_list_empty(&service->slots)) {
    MARGAY_CHECK(cds_lfht_del(tables_->services, &service->node.link) == 0);
    retire(service);
  }
}

const CacheEntry& EntryTable::entry(const Slot* slot) { return *slot->entry; }

std::optional<CacheEntry> EntryTable::find(std::string_view csci_id) const {
  const ReadLock lock;
  const Slot* slot = tables_->slot(csci_id);
  if (slot == nullptr) return std::nullopt;
  return *rcu_dereference(slot->entry);
}

void EntryTable::for_each_of(std::string_view cs_id, const Visitor& visit) const {
  const ReadLock lock;
  Service* service = tables_->service(cs_id);
  if (service == nullptr) return;
  for (cds_list_head* at = rcu_dereference(service->slots.next); at != &service->slots;
       at = rcu_dereference(at->next)) {
    const Slot* slot = Linked<cds_list_head, Slot>::owner_of(at);
    visit(*rcu_dereference(slot->entry));
  }
}

void EntryTable::for_each(const Visitor& visit) const {
  const ReadLock lock;
  cds_lfht_iter at;
  cds_lfht_first(tables_->slots, &at);
  for (; cds_lfht_iter_get_node(&at) != nullptr; cds_lfht_next(tables_->slots, &at)) {
    const Slot* slot = Tables::BySci::owner_of(cds_lfht_iter_get_node(&at));
    visit(*rcu_dereference(slot->entry));
  }
}

}  // namespace margay::c_sma
