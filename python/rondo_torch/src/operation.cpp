// Operations and Works: see operation.hpp.
#include "operation.hpp"

#include "group.hpp"

#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <thread>

namespace rondo_torch
{

std::exception_ptr backend_error(const std::string &message)
{
    try {
        TORCH_CHECK_WITH(DistBackendError, false, message);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr; // not reached
}

static std::atomic<uint64_t> last_key{0};

Operation::Operation(std::shared_ptr<Group> group, const char *name, Milliseconds timeout)
    : group(std::move(group)), name(name), timeout(timeout),
      deadline(timeout.count() > 0 ? started + timeout : Clock::time_point::max()), key(++last_key)
{
}

std::exception_ptr Operation::failure_of(rondo_result_t code)
{
    return backend_error(group->describe(name, code, rondo_last_error()));
}

void Operation::complete_requests()
{
    requests.clear();
    if (first_failure_ == RONDO_SUCCESS) {
        conclude(begin_failure_);
        return;
    }
    std::string text = failure_text_;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!expired_.empty() && first_failure_ == RONDO_ERR_ABORTED)
            text = expired_;
    }
    rondo_result_t failure = RONDO_SUCCESS;
    if (rondo_comm_status(comm, &failure, nullptr) != RONDO_SUCCESS || failure != RONDO_SUCCESS)
        group->run_abort_hooks();
    conclude(backend_error(text));
}

void Operation::block(const std::function<rondo_result_t(rondo_request_t *)> &call)
{
    std::lock_guard<std::mutex> lock(settling);
    first_failure_ = call(nullptr);
    if (first_failure_ != RONDO_SUCCESS)
        failure_text_ = group->describe(name, first_failure_, rondo_last_error());
    complete_requests();
}

bool Operation::poll()
{
    if (done.load(std::memory_order_acquire) || received_by_messages || on_gpu())
        return done.load(std::memory_order_acquire);
    std::unique_lock<std::mutex> lock(settling, std::try_to_lock);
    if (!lock.owns_lock()) // another thread waits for the requests
        return done.load(std::memory_order_acquire);
    if (done)
        return true;
    bool all = true;
    for (auto &request : requests) {
        int complete = 0;
        if (request == nullptr)
            continue;
        const rondo_result_t code = rondo_test(request, &complete);
        if (code != RONDO_SUCCESS && first_failure_ == RONDO_SUCCESS) {
            first_failure_ = code;
            failure_text_ = group->describe(name, code, rondo_last_error());
        }
        if (complete || code != RONDO_SUCCESS)
            request = nullptr;
        else
            all = false;
    }
    if (all)
        complete_requests();
    return all;
}

void Operation::wait()
{
    if (done.load(std::memory_order_acquire))
        return;
    if (received_by_messages || on_gpu()) {
        std::unique_lock<std::mutex> lock(mutex_);
        ended_.wait(lock, [this] { return concluded_ && done.load(); });
        return;
    }
    complete();
}

void Operation::complete()
{
    std::lock_guard<std::mutex> lock(settling);
    if (done)
        return;
    for (auto &request : requests) {
        if (request == nullptr)
            continue;
        const rondo_result_t code = rondo_wait(request);
        request = nullptr;
        if (code != RONDO_SUCCESS && first_failure_ == RONDO_SUCCESS) {
            first_failure_ = code;
            failure_text_ = group->describe(name, code, rondo_last_error());
        }
    }
    complete_requests();
}

bool Operation::wait_until(Clock::time_point until)
{
    if (received_by_messages || on_gpu()) {
        std::unique_lock<std::mutex> lock(mutex_);
        return ended_.wait_until(lock, until, [this] { return concluded_ && done.load(); });
    }
    for (int round = 0; !poll(); round++) {
        if (Clock::now() >= until)
            return false;
        if (round > 1000) // the daemon's threads get the core
            std::this_thread::sleep_for(std::chrono::microseconds(round > 10000 ? 1000 : 50));
    }
    return true;
}

void Operation::expire(const std::string &text)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (expired_.empty())
        expired_ = text;
}

void Operation::conclude(std::exception_ptr failure)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (concluded_)
            return;
        concluded_ = true;
    }
    if (!failure && finish && on_gpu()) {
        finish_on_gpu();
        return;
    }
    if (!failure && finish) {
        try {
            finish();
        } catch (...) {
            failure = std::current_exception();
        }
    }
    settle(failure);
}

static StreamWatch::Ready came_to(std::shared_ptr<c10::Event> event)
{
    return [event = std::move(event)] { return !event || event->query(); };
}

void Operation::finish_on_gpu()
{
    group->streams(device).post(nullptr, came_to(ready), [self = shared_from_this()](std::exception_ptr failure) {
        std::shared_ptr<c10::Event> finished;
        try {
            if (failure)
                std::rethrow_exception(failure);
            const auto stream = own_stream(self->device);
            c10::StreamGuard guard(stream);
            self->finish();
            finished = std::make_shared<c10::Event>(self->device.type());
            finished->record(stream);
        } catch (...) {
            self->settle(std::current_exception());
            return;
        }
        self->group->streams(self->device).post(nullptr, came_to(finished), [self](std::exception_ptr failure) {
            self->settle(failure);
        });
    });
}

void Operation::settle(std::exception_ptr failure)
{
    group->unwatch(this);
    ended = Clock::now();
    error = failure;
    finish = nullptr;
    buffers.clear();
    std::function<void()> record;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        record.swap(end_of_record);
        done.store(true, std::memory_order_release);
        ended_.notify_all();
        if (future_)
            group->settle_future(future_, device, outputs, error);
    }
    if (record)
        record();
    if (!failure)
        group->run_completion_hooks(key, duration());
}

namespace
{

// One of what is awaited has come. On a thread of the library, which must not wait.
void came(const std::shared_ptr<Operation> &operation)
{
    if (operation->awaited.fetch_sub(1) == 1)
        operation->group->complete_later(operation);
}

void request_completed(void *argument, rondo_result_t)
{
    std::unique_ptr<std::shared_ptr<Operation>> operation(static_cast<std::shared_ptr<Operation> *>(argument));
    came(*operation);
}

} // namespace

void Operation::follow_requests()
{
    awaited = 1; // the last one, or this thread, takes it to 0
    for (auto request : requests)
        if (request != nullptr) {
            auto *argument = new std::shared_ptr<Operation>(shared_from_this());
            awaited++;
            if (rondo_request_callback(request, request_completed, argument) != RONDO_SUCCESS)
                request_completed(argument, RONDO_ERR_STATE); // completing it tells why
        }
    came(shared_from_this());
}

void Operation::mark_stream()
{
    group->streams(device); // makes them, with Python's lock
    const auto stream = current_stream(device);
    ready = std::make_shared<c10::Event>(device.type());
    ready->record(stream);
}

void Operation::begin_after_stream(const void *order, std::function<void()> begin)
{
    auto &streams = group->streams(device);
    const auto may_begin = [needs_gpu = needs_gpu, group = group, came = came_to(ready)] {
        return (!needs_gpu || group->gpu_is_open()) && came();
    };
    bool now = false;
    std::exception_ptr failure;
    try {
        now = !streams.pending(order) && may_begin();
    } catch (...) {
        failure = std::current_exception();
    }
    if (now || failure) {
        begin_requests(begin, failure);
        if (done && error)
            std::rethrow_exception(error);
        return;
    }
    streams.post(order, may_begin, [self = shared_from_this(), begin = std::move(begin)](std::exception_ptr failure) {
        self->begin_requests(begin, failure);
    });
}

void Operation::begin_requests(const std::function<void()> &begin, std::exception_ptr failure)
{
    {
        std::lock_guard<std::mutex> lock(settling);
        if (begun_)
            return;
        begun_ = true;
        try {
            if (failure)
                std::rethrow_exception(failure);
            begin();
        } catch (...) {
            begin_failure_ = std::current_exception();
        }
        if (!requests.empty()) {
            follow_requests();
            return;
        }
    }
    conclude(begin_failure_);
}

bool Operation::give_up(std::exception_ptr failure)
{
    if (!on_gpu() || received_by_messages)
        return false;
    {
        std::lock_guard<std::mutex> lock(settling);
        if (begun_)
            return false;
        begun_ = true;
    }
    conclude(failure);
    return true;
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::future()
{
    bool ask = false;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!future_) {
            std::vector<c10::Device> devices;
            if (on_gpu())
                devices.push_back(device);
            future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
            if (done) {
                if (error)
                    future_->setErrorIfNeeded(error);
                else
                    future_->markCompleted(c10::IValue(outputs));
            } else
                ask = !received_by_messages && !on_gpu();
        }
    }
    if (ask) {
        std::unique_lock<std::mutex> lock(settling, std::try_to_lock);
        if (!lock.owns_lock()) // another thread completes the requests, or has just looked at them
            group->complete_later(shared_from_this());
        else if (!done)
            follow_requests();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    return future_;
}

Work::Work(int rank, c10d::OpType type, const char *title, const std::optional<std::vector<at::Tensor>> &inputs,
           std::shared_ptr<Operation> operation)
    : c10d::Work(rank, type, title, inputs), operation_(std::move(operation))
{
    operation_->end_of_record = std::move(recordFunctionEndCallback_);
    recordFunctionEndCallback_ = nullptr;
}

Work::~Work()
{
    if (!operation_->done)
        operation_->group->adopt(operation_);
}

bool Work::isCompleted()
{
    return operation_->poll();
}

bool Work::isSuccess() const
{
    return operation_->poll() && !operation_->error;
}

std::exception_ptr Work::exception() const
{
    return operation_->done ? operation_->error : nullptr;
}

int Work::sourceRank() const
{
    return operation_->source;
}

std::vector<at::Tensor> Work::result()
{
    return operation_->outputs;
}

void Work::synchronize()
{
    wait(kNoTimeout);
}

bool Work::wait(std::chrono::milliseconds timeout)
{
    if (timeout == kNoTimeout || timeout.count() < 0)
        operation_->wait();
    else if (!operation_->wait_until(Clock::now() + timeout))
        std::rethrow_exception(backend_error(operation_->group->describe(
            operation_->name, RONDO_ERR_TIMEOUT,
            "Timed out: it is not complete after wait(" + std::to_string(timeout.count()) + " ms); it goes on")));
    if (operation_->done && operation_->error)
        std::rethrow_exception(operation_->error);
    return true;
}

void Work::abort()
{
    operation_->group->abort("Work.abort()");
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    return operation_->future();
}

float Work::getDuration() const
{
    TORCH_CHECK(operation_->done, "rondo: ", operation_->name, " is not complete, and has no duration");
    return operation_->duration();
}

#if RONDO_TORCH_HAS_HOOKS
uint64_t Work::getCompletionKey() const
{
    return operation_->key;
}
#endif

uint64_t Work::getSequencenumber() const
{
    return operation_->sequence;
}

} // namespace rondo_torch
