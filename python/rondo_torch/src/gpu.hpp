// What operations on GPU tensors need beside rondo.h. They begin when the stream of their call has come so far, and wait()
// waits on the host for their end. So no stream waits for another rank, and neither does a device synchronization between
// calls. A stream that waited for an end would hold up CUDA's calls that wait for all streams, such as the first launch of a
// kernel that is not loaded; meanwhile the driver lets no other thread launch anything, and the daemon, which is to bring the
// end about, cannot start.
//
// Events and streams are those of PyTorch's interface for any accelerator. What it lacks is looked up in CUDA's driver at run
// time, so the extension needs no CUDA to be built.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace rondo_torch
{

// The stream of the device that the calling thread enqueues on.
c10::Stream current_stream(c10::Device device);
// A stream of this library's own on the device, which waits for nothing but its own work: one for the process. The first call
// for a device takes Python's lock.
c10::Stream own_stream(c10::Device device);

// A thread that runs functions when what they need is there.
class StreamWatch
{
  public:
    using Ready = std::function<bool()>;                  // asked again and again; must not wait
    using Task = std::function<void(std::exception_ptr)>; // with what Ready has thrown, or NULL

    StreamWatch();
    ~StreamWatch();
    // Ends the thread, which runs what is left: after DRAIN with an error, whether it is ready or not.
    void stop();
    // Runs the task once it is ready. Tasks of one order, if that is not NULL, run in the order of the calls.
    void post(const void *order, Ready ready, Task task);
    // Whether a task of the order has not ended.
    bool pending(const void *order);

  private:
    struct Entry {
        const void *order;
        Ready ready;
        Task task;
    };
    static constexpr auto DRAIN = std::chrono::seconds(10);
    void run();
    // The first entry whose task can run, or the end. *failure: what its Ready has thrown.
    std::list<Entry>::iterator first_ready(std::exception_ptr *failure);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Entry> entries_;
    const void *running_ = nullptr; // order of the task that runs
    bool stopping_ = false;
    std::chrono::steady_clock::time_point until_;
    std::thread thread_; // last: it uses the others
};

} // namespace rondo_torch
