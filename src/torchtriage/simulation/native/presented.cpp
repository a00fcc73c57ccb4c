#include "presented.h"

#include "device.h"

#include <torch/csrc/Device.h>

#include <string>

namespace sim {

namespace {

bool as_cuda = false;
newfunc make_device = nullptr;

// torch.device cannot be subclassed, and tensors return it by themselves; so its slots are replaced.
c10::Device& device_of(PyObject* self) { return reinterpret_cast<THPDevice*>(self)->device; }

std::string type_of(const c10::Device& device) {
  return as_cuda && device.type() == kSim ? "cuda" : c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

PyObject* text(const std::string& said) { return PyUnicode_FromStringAndSize(said.data(), Py_ssize_t(said.size())); }

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* made = make_device(type, args, kwargs);
  if (made != nullptr && device_of(made).is_cuda()) device_of(made) = c10::Device(kSim, device_of(made).index());
  return made;
}

PyObject* get_type(PyObject* self, void*) { return text(type_of(device_of(self))); }
PyObject* str(PyObject* self) { return text(name_of(device_of(self))); }

PyObject* repr(PyObject* self) {
  const auto& device = device_of(self);
  const auto index = device.has_index() ? ", index=" + std::to_string(device.index()) : std::string();
  return text("device(type='" + type_of(device) + "'" + index + ")");
}

PyObject* reduce(PyObject* self, PyObject*) {
  const auto& device = device_of(self);
  auto* made = reinterpret_cast<PyObject*>(Py_TYPE(self));
  return device.has_index() ? Py_BuildValue("(O(si))", made, type_of(device).c_str(), int(device.index()))
                            : Py_BuildValue("(O(s))", made, type_of(device).c_str());
}

PyObject* str_method(PyObject* self, PyObject*) { return str(self); }
PyObject* repr_method(PyObject* self, PyObject*) { return repr(self); }

PyGetSetDef type_attribute{"type", get_type, nullptr, nullptr, nullptr};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__str__", str_method, METH_NOARGS, nullptr},
    {"__repr__", repr_method, METH_NOARGS, nullptr},
};

void put(const char* name, PyObject* descriptor) {
  TORCH_CHECK(descriptor != nullptr && PyDict_SetItemString(THPDeviceType.tp_dict, name, descriptor) == 0,
      "torch.device.", name, " cannot be replaced");
  Py_DECREF(descriptor);
}

} // namespace

void present_as_cuda() {
  if (as_cuda) return;
  as_cuda = true;
  make_device = THPDeviceType.tp_new;
  THPDeviceType.tp_new = make;
  THPDeviceType.tp_str = str;
  THPDeviceType.tp_repr = repr;
  put("type", PyDescr_NewGetSet(&THPDeviceType, &type_attribute));
  for (auto& method : methods) put(method.ml_name, PyDescr_NewMethod(&THPDeviceType, &method));
  PyType_Modified(&THPDeviceType);
}

std::string name_of(c10::Device device) {
  return device.has_index() ? type_of(device) + ":" + std::to_string(device.index()) : type_of(device);
}

bool is_presented_as_cuda() { return as_cuda; }

} // namespace sim
