// SPDX-License-Identifier: Apache-2.0
#pragma once

// What nearly every test reads, compiled once: two thirds of a test's compilation is these. For release builds by GCC;
// sanitizers' builds do without, so that what a test forgets to include shows there.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
