// A thread with a queue of functions, which also calls a function at a given time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rondo_torch
{

class Worker
{
  public:
    using Clock = std::chrono::steady_clock;

    // alarm: called on the thread at or after the time that was asked for last by wake_at(); it returns the next time.
    explicit Worker(std::function<Clock::time_point()> alarm = nullptr) : alarm_(std::move(alarm)), thread_([this] { run(); })
    {
    }
    // Runs what is queued, and ends the thread.
    ~Worker()
    {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    void post(std::function<void()> task)
    {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        changed_.notify_one();
    }
    void wake_at(Clock::time_point time)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (time < next_) {
            next_ = time;
            changed_.notify_one();
        }
    }

  private:
    void run()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            if (!tasks_.empty()) {
                auto task = std::move(tasks_.front());
                tasks_.pop_front();
                lock.unlock();
                task();
                task = nullptr;
                lock.lock();
            } else if (stopping_)
                return;
            else if (alarm_ && next_ <= Clock::now()) {
                next_ = Clock::time_point::max();
                lock.unlock();
                const auto next = alarm_();
                lock.lock();
                next_ = std::min(next_, next);
            } else if (next_ == Clock::time_point::max())
                changed_.wait(lock);
            else
                changed_.wait_until(lock, next_);
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    Clock::time_point next_ = Clock::time_point::max();
    std::function<Clock::time_point()> alarm_;
    std::thread thread_; // last: it uses the others
};

} // namespace rondo_torch
