// Expecting a kiln::Error with a text in its message.

#pragma once

#include "dialect/dsl/Types.h"

#include <gtest/gtest.h>

/// Runs `body`; the test fails unless it throws an Error whose message contains every one of `parts`.
template <class Body> void expectError(Body body, std::initializer_list<std::string> parts) {
  try {
    body();
    ADD_FAILURE() << "expected an error, but got none";
  } catch (const kiln::Error &error) {
    for (const std::string &part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << error.what() << "' lacks '" << part << "'";
  }
}
