#include "ledger.h"

#include <pybind11/pybind11.h>

namespace sim {

namespace {

std::vector<std::string>& skipped_prefixes() {
  static std::vector<std::string> prefixes;
  return prefixes;
}

bool is_skipped(const std::string& file) {
  for (const auto& prefix : skipped_prefixes()) {
    if (file.compare(0, prefix.size(), prefix) == 0) return true;
  }
  return file.compare(0, 8, "<frozen ") == 0;
}

// A thread that asks for the GIL then is ended by Python, and with it the process.
bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

// Calls VISIT(file, line, function) from the innermost Python frame outwards until it returns false.
template <class Visit>
void walk(Visit visit) {
  if (!Py_IsInitialized() || is_finalizing()) return;
  pybind11::gil_scoped_acquire lock;
  PyFrameObject* frame = PyEval_GetFrame(); // null in autograd's threads, which run no Python
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const char* name = PyUnicode_AsUTF8(code->co_name);
    if (file == nullptr || name == nullptr) PyErr_Clear();
    const bool on = visit(std::string(file ? file : "?"), int64_t(PyFrame_GetLineNumber(frame)), name ? name : "?");
    Py_DECREF(code);
    PyFrameObject* outer = on ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = outer;
  }
}

} // namespace

void skip_files_under(std::vector<std::string> prefixes) { skipped_prefixes() = std::move(prefixes); }

Place calling_line() {
  Place found;
  walk([&](std::string file, int64_t line, const char*) {
    if (is_skipped(file)) return true;
    found = {std::move(file), line};
    return false;
  });
  return found;
}

std::vector<std::string> calling_lines(int64_t most) {
  std::vector<std::string> lines;
  if (most <= 0) return lines;
  walk([&](std::string file, int64_t line, const char* name) {
    lines.push_back(file + ":" + std::to_string(line) + " " + name);
    return int64_t(lines.size()) < most;
  });
  return lines;
}

int64_t Ledger::next_step() {
  std::lock_guard<std::mutex> lock(mutex);
  return ++step_;
}

void Ledger::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  kernels.clear();
  copies.clear();
  synchronisations.clear();
  collectives.clear();
  allocations.clear();
  step_ = 0;
}

Ledger& ledger() {
  static Ledger kept;
  return kept;
}

} // namespace sim
