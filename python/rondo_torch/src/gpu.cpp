// Signals, streams and events of GPUs: see gpu.hpp.
#include "gpu.hpp"

#include <ATen/ATen.h>
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

// Functions of CUDA's driver, with the types of its interface: a stream is a pointer, a result an int.
struct Driver {
    int (*wait_value)(void *stream, unsigned long long address, uint32_t value, unsigned flags) = nullptr;
    int (*create_stream)(void **stream, unsigned flags) = nullptr;
    int (*loading_mode)(int *mode) = nullptr;
    static constexpr unsigned GREATER_OR_EQUAL = 0, NON_BLOCKING = 1;
    static constexpr int EAGER = 1;

    Driver()
    {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return;
        void *wait = dlsym(library, "cuStreamWaitValue32_v2");
        if (wait == nullptr)
            wait = dlsym(library, "cuStreamWaitValue32");
        wait_value = reinterpret_cast<decltype(wait_value)>(wait);
        create_stream = reinterpret_cast<decltype(create_stream)>(dlsym(library, "cuStreamCreate"));
        loading_mode = reinterpret_cast<decltype(loading_mode)>(dlsym(library, "cuModuleGetLoadingMode"));
    }

    // Whether streams may wait for what other threads of the process bring about by calls of CUDA. Where kernels are loaded at
    // their first launch, that launch waits for all streams, and meanwhile no other thread's launch returns.
    bool streams_may_wait() const
    {
        int mode = 0;
        return wait_value != nullptr && loading_mode != nullptr && loading_mode(&mode) == 0 && mode == EAGER;
    }
};

const Driver &driver()
{
    static const Driver only;
    return only;
}

// The driver's handle of a stream of PyTorch. Takes Python's lock the first time that it sees the stream.
void *handle_of(const c10::Stream &stream)
{
    static auto &mutex = *new std::mutex; // never freed: threads may use them until the process is gone
    static auto &known = *new std::map<std::pair<int, int64_t>, void *>;
    const std::pair<int, int64_t> key{stream.device_index(), stream.id()};
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = known.find(key);
        if (found != known.end())
            return found->second;
    }
    uintptr_t handle;
    {
        pybind11::gil_scoped_acquire lock;
        using namespace pybind11::literals;
        const auto type = pybind11::module_::import("torch").attr("cuda").attr("Stream");
        const auto object = type("stream_id"_a = stream.id(), "device_index"_a = static_cast<int>(stream.device_index()),
                                 "device_type"_a = static_cast<int>(stream.device_type()));
        handle = object.attr("cuda_stream").cast<uintptr_t>();
    }
    std::lock_guard<std::mutex> lock(mutex);
    return known[key] = reinterpret_cast<void *>(handle);
}

// Words of pinned memory, each in a cache line of its own. A word counts up: a stream that has not come to its wait yet when
// the word serves the next Signal finds at least what it waits for.
struct Pool {
    static constexpr int64_t WORDS = 64, LINE = 16; // LINE: words of 4 bytes
    std::mutex mutex;
    std::vector<std::pair<uint32_t *, uint32_t>> free; // with the last target
    std::vector<at::Tensor> memory;

    std::pair<uint32_t *, uint32_t> take()
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (free.empty()) {
            memory.push_back(at::zeros({WORDS * LINE}, at::TensorOptions().dtype(at::kInt).pinned_memory(true)));
            auto *words = static_cast<uint32_t *>(memory.back().data_ptr());
            for (int64_t i = 0; i < WORDS; i++)
                free.push_back({words + i * LINE, 0});
        }
        const auto word = free.back();
        free.pop_back();
        return word;
    }
    void give(uint32_t *address, uint32_t target)
    {
        std::lock_guard<std::mutex> lock(mutex);
        free.push_back({address, target});
    }
};

Pool &pool()
{
    static Pool *only = new Pool; // never freed, as above
    return *only;
}

} // namespace

Signal Signal::create()
{
    static const bool useful = driver().streams_may_wait();
    if (!useful)
        return {};
    const auto word = pool().take();
    Signal signal;
    signal.word_ = std::shared_ptr<Word>(new Word{word.first, word.second + 1}, [](Word *old) {
        // What a stream still waits for must come, whoever has forgotten it.
        __atomic_store_n(old->address, old->target, __ATOMIC_RELEASE);
        pool().give(old->address, old->target);
        delete old;
    });
    return signal;
}

// Release: what the operation has written, or the host has seen written, comes before the word.
void Signal::set() const
{
    if (word_)
        __atomic_store_n(word_->address, word_->target, __ATOMIC_RELEASE);
}

bool Signal::hold(const c10::Stream &stream) const
{
    if (!word_)
        return false;
    return driver().wait_value(handle_of(stream), reinterpret_cast<uintptr_t>(word_->address), word_->target,
                               Driver::GREATER_OR_EQUAL) == 0;
}

c10::Stream current_stream(c10::Device device)
{
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream own_stream(c10::Device device)
{
    static auto &mutex = *new std::mutex;
    static auto &known = *new std::map<int, c10::Stream>;
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = known.find(device.index());
        if (found != known.end())
            return found->second;
    }
    // The streams of PyTorch's pool are the user's too, who may let them wait for this very operation.
    c10::DeviceGuard guard(device);
    void *handle = nullptr;
    TORCH_CHECK(driver().create_stream != nullptr && driver().create_stream(&handle, Driver::NON_BLOCKING) == 0,
                "rondo: CUDA's driver makes no stream on ", device);
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
