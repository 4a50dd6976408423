// Streams of GPUs: see gpu.hpp.
#include "gpu.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/extension.h>

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <vector>

namespace rondo_torch
{

namespace
{

// Makes a stream by CUDA's driver, with the types of its interface: a stream is a pointer, a result an int. NULL if it does
// not.
void *create_stream()
{
    constexpr unsigned NON_BLOCKING = 1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *stream = nullptr;
    const auto create =
        reinterpret_cast<int (*)(void **, unsigned)>(library != nullptr ? dlsym(library, "cuStreamCreate") : nullptr);
    return create != nullptr && create(&stream, NON_BLOCKING) == 0 ? stream : nullptr;
}

} // namespace

c10::Stream current_stream(c10::Device device)
{
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream own_stream(c10::Device device)
{
    static auto &mutex = *new std::mutex; // never freed: threads may use them until the process is gone
    static auto &known = *new std::map<int, c10::Stream>;
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = known.find(device.index());
        if (found != known.end())
            return found->second;
    }
    // The streams of PyTorch's pool are the user's too, who may let them wait for this very operation.
    c10::DeviceGuard guard(device);
    void *handle = create_stream();
    TORCH_CHECK(handle != nullptr, "rondo: CUDA's driver makes no stream on ", device);
    pybind11::gil_scoped_acquire python;
    using namespace pybind11::literals;
    const auto object = pybind11::module_::import("torch").attr("cuda").attr("ExternalStream")(
        reinterpret_cast<uintptr_t>(handle), "device"_a = static_cast<int>(device.index()));
    const c10::Stream stream(c10::Stream::UNSAFE, device, object.attr("stream_id").cast<int64_t>());
    std::lock_guard<std::mutex> lock(mutex);
    return known.emplace(device.index(), stream).first->second;
}

StreamWatch::StreamWatch() : thread_([this] { run(); })
{
}

StreamWatch::~StreamWatch()
{
    stop();
}

void StreamWatch::stop()
{
    if (!thread_.joinable())
        return;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
        until_ = std::chrono::steady_clock::now() + DRAIN;
    }
    changed_.notify_all();
    thread_.join();
}

void StreamWatch::post(const void *order, Ready ready, Task task)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        entries_.push_back({order, std::move(ready), std::move(task)});
    }
    changed_.notify_all();
}

bool StreamWatch::pending(const void *order)
{
    std::lock_guard<std::mutex> lock(mutex_);
    return running_ == order ||
           std::any_of(entries_.begin(), entries_.end(), [order](const Entry &entry) { return entry.order == order; });
}

std::list<StreamWatch::Entry>::iterator StreamWatch::first_ready(std::exception_ptr *failure)
{
    std::vector<const void *> blocked; // orders with an entry before that is not ready
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->order != nullptr && std::find(blocked.begin(), blocked.end(), entry->order) != blocked.end())
            continue;
        try {
            if (entry->ready())
                return entry;
        } catch (...) {
            *failure = std::current_exception();
            return entry;
        }
        if (entry->order != nullptr)
            blocked.push_back(entry->order);
    }
    return entries_.end();
}

void StreamWatch::run()
{
    std::unique_lock<std::mutex> lock(mutex_);
    for (int rounds = 0;; rounds++) {
        if (entries_.empty()) {
            if (stopping_)
                return;
            changed_.wait(lock);
            rounds = 0;
            continue;
        }
        std::exception_ptr failure;
        auto ready = first_ready(&failure);
        if (ready == entries_.end() && stopping_ && std::chrono::steady_clock::now() > until_) {
            ready = entries_.begin();
            failure = std::make_exception_ptr(std::runtime_error("rondo: the group has ended before its streams came so far"));
        }
        if (ready == entries_.end()) { // at first often, as streams are short, then less
            changed_.wait_for(lock, std::chrono::microseconds(rounds < 200 ? 5 : rounds < 2000 ? 50 : 500));
            continue;
        }
        Entry entry = std::move(*ready);
        entries_.erase(ready);
        running_ = entry.order;
        lock.unlock();
        entry.task(failure);
        entry = {}; // what it held ends without the lock
        lock.lock();
        running_ = nullptr;
        rounds = 0;
    }
}

} // namespace rondo_torch
