// All operations of the `simt` dialect: on tiles first, then those of one thread.

#ifndef KILN_DIALECT_SIMT_SIMTOPS_TD
#define KILN_DIALECT_SIMT_SIMTOPS_TD

include "dialect/simt/SimtDialect.td"
include "dialect/simt/ExchangeOps.td"
include "dialect/simt/ThreadOps.td"
include "dialect/simt/SortOps.td"

#endif
