// Tests that run on every device of this machine, or on the one that KILN_TEST_DEVICE names.

#pragma once

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

class DeviceTest : public testing::TestWithParam<std::string> {};

inline std::vector<std::string> testDevices() {
  if (const char *name = std::getenv("KILN_TEST_DEVICE"))
    return {name};
  return {"cpu", "cpu:generic"};
}

/// `cpu:generic` as a part of a test's name.
inline std::string deviceLabel(const testing::TestParamInfo<std::string> &info) {
  std::string label = info.param;
  std::replace(label.begin(), label.end(), ':', '_');
  return label;
}

#define KILN_ON_DEVICES(suite) INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(testDevices()), deviceLabel)
