// The extension's module: rondo_torch._C.
#include "backend.hpp"

#include <torch/extension.h>

#include <pybind11/chrono.h>

static rondo_torch::Backend &of_rondo(const c10::intrusive_ptr<c10d::Backend> &backend)
{
    auto *rondo = dynamic_cast<rondo_torch::Backend *>(backend.get());
    TORCH_CHECK(rondo != nullptr, "rondo: the group's backend is ", backend->getBackendName(), ", and not rondo");
    return *rondo;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "The c10d backend of Rondo.";
    // Before PyTorch 2.15 split_group() in Python asks a backend for its options, and copies them.
    pybind11::class_<rondo_torch::GroupOptions, c10::intrusive_ptr<rondo_torch::GroupOptions>, c10d::Backend::Options>(
        module, "Options")
        .def("__deepcopy__", [](const rondo_torch::GroupOptions &options, const pybind11::dict &) {
            return c10::make_intrusive<rondo_torch::GroupOptions>(options);
        });
    pybind11::class_<rondo_torch::Backend, c10::intrusive_ptr<rondo_torch::Backend>, c10d::Backend>(module, "Backend")
        .def_property_readonly("options", [](const rondo_torch::Backend &backend) { return backend.group_options(); });
    module.def(
        "create_backend",
        [](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout,
           std::string name, std::vector<int64_t> global_ranks) -> c10::intrusive_ptr<c10d::Backend> {
            return c10::make_intrusive<rondo_torch::Backend>(store, rank, size, timeout, std::move(name),
                                                             std::move(global_ranks));
        },
        pybind11::call_guard<pybind11::gil_scoped_release>(), "Makes the backend of a process group: collective over it.");
    module.def(
        "register_keys",
        [](const c10::intrusive_ptr<c10d::Backend> &backend, const std::vector<std::string> &keys) {
            of_rondo(backend).register_keys(keys);
        },
        pybind11::call_guard<pybind11::gil_scoped_release>(), "Makes keys known to a group: collective over it.");
    module.def(
        "statistics", [](const c10::intrusive_ptr<c10d::Backend> &backend) { return of_rondo(backend).statistics(); },
        pybind11::call_guard<pybind11::gil_scoped_release>(), "The counters of a group's runtimes.");
    module.def("set_key", &rondo_torch::Backend::set_key, "Sets the calling thread's key, and returns the one before.");
    module.def(
        "close_all", &rondo_torch::Group::close_all, pybind11::call_guard<pybind11::gil_scoped_release>(),
        "Ends all groups of the process: waits for the other ranks at most so long, then for the library at most so long.");
}
