// Expecting a kiln::Error: its whole message, or texts that must be in it.

#pragma once

#include "dialect/dsl/Types.h"

#include <gtest/gtest.h>

/// The message of the Error that `action` throws; the test fails when it throws none.
template <class Action> std::string errorOf(Action action) {
  try {
    action();
  } catch (const kiln::Error &error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error, but got none";
  return "";
}

/// Runs `action`; the test fails unless it throws an Error whose message contains every one of `parts`.
template <class Action> void expectError(Action action, std::initializer_list<std::string> parts) {
  const std::string text = errorOf(action);
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}
