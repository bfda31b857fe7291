// The template of --report's page: page.html, with `{{DATA}}` in place of the data.

#pragma once

namespace kiln::tools {
extern const char *const pageText;
} // namespace kiln::tools
