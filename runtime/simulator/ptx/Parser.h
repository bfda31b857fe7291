// From PTX text to a Module.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::ptx {

/// Parses a whole file. Throws Error, `PTX line N: expected …, but got …`, if it is not PTX. Of instructions, only the
/// form of the operands is checked.
Module parse(std::string text);

/// Special registers by number, as Operand::index has them; OperandParser.cpp has their names.
enum class Special : uint8_t {
  tidX,
  tidY,
  tidZ,
  ntidX,
  ntidY,
  ntidZ,
  ctaidX,
  ctaidY,
  ctaidZ,
  nctaidX,
  nctaidY,
  nctaidZ,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clusterCtaidX,
  clusterCtaidY,
  clusterCtaidZ,
  clusterNctaidX,
  clusterNctaidY,
  clusterNctaidZ,
  clusteridX,
  clusteridY,
  clusteridZ,
  nclusteridX,
  nclusteridY,
  nclusteridZ,
  clusterCtarank,
  clusterNctarank,
  lanemaskEq,
  lanemaskLe,
  lanemaskLt,
  lanemaskGe,
  lanemaskGt,
  clock,
  clockHi,
  clock64,
  globaltimer,
  globaltimerLo,
  globaltimerHi,
  dynamicSmemSize,
  totalSmemSize,
  reservedSmemOffset0,
  reservedSmemOffset1,
  reservedSmemOffsetBegin,
  reservedSmemOffsetEnd,
  reservedSmemOffsetCap,
  aggrSmemSize,
  isExplicitCluster,
  currentGraphExec,
  envreg, // all 32 of them, which only a driver sets
  warpSize
};

} // namespace kiln::ptx
