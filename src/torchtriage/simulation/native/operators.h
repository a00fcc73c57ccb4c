// Properties of operators: from their schemas, and a few that schemas do not contain.
#pragma once

#include "clock.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace sim {

struct Operator {
  explicit Operator(const c10::OperatorHandle& handle);

  std::string name; // "addmm", "add_", "torchvision::nms"
  bool is_view = false; // returns a view of an argument, without a kernel
  bool is_mutating = false; // writes to an argument, which may be resized
  bool is_random = false; // draws random numbers without a generator argument
  bool can_mix_host_scalars = false; // accepts 0-dim CPU tensors, as TensorIterator does on CUDA
  bool is_indexing = false; // its second argument is a list of indices or masks
  bool is_synchronising = false; // the host needs a result of the device: a shape or a number

  // Whether this call synchronises; indexing does so only with a mask, whose count is the shape.
  bool synchronises(c10::ArrayRef<c10::IValue> arguments) const;

  // Multiplications and additions; 0 for operators without products.
  int64_t flops(c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results) const;
};

} // namespace sim
