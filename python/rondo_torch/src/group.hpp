// One c10d process group: a runtime of its own, whose ranks are the group's. Its world communicator carries the collectives,
// a copy of it the messages, and one for each registered key the collectives of that key. The first collective of GPU tensors
// has a second runtime made, on that GPU, with the same communicators but for the copy; the call does not wait for it, as other
// ranks may first start something else. The watchdog's thread ends what is beyond its timeout.
#pragma once

#include "messages.hpp"
#include "operation.hpp"
#include "worker.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <list>
#include <map>

namespace rondo_torch
{

class Group : public std::enable_shared_from_this<Group>
{
  public:
    Group(int rank, int size, std::string name, std::vector<int64_t> global_ranks, Milliseconds timeout);
    // Meets the other ranks through the store. Collective over the group.
    void open(const c10::intrusive_ptr<c10d::Store> &store);
    // Makes communicators for keys, which must be new. Collective over the group.
    void register_keys(const std::vector<std::string> &keys);
    // The communicator of a key's collectives on the processor, or on the GPU once it is open; an empty key: of those without.
    rondo_comm_t collectives(const std::string &key, bool on_gpu);
    // Has the runtime on a GPU made, if this is the first call; all ranks of the group make it, sooner or later. Throws if the
    // group is on another GPU.
    void ask_for_gpu(c10::Device device);
    // Whether it has been made. Throws the error if it could not be made.
    bool gpu_is_open() const;
    // What starts and ends operations when a GPU's streams have come so far.
    StreamWatch &streams(c10::Device device);
    // Ends the runtime on a thread of its own, once all ranks have come so far. The first call counts.
    void close();
    // Throws if the group has been closed, as the runtime may be gone.
    void check_open(const char *call) const;
    // Of the runtimes, by "cpu" and "cuda": the fields of rondo_stats_t by their names.
    std::map<std::string, std::map<std::string, uint64_t>> statistics();
    // Ends all operations on all ranks with an error.
    void abort(const std::string &reason);

    // The text of an error: which call of which rank of which group, and what went wrong.
    std::string describe(const std::string &call, rondo_result_t code, const std::string &text) const;
    // The watchdog looks after the operation until unwatch(), which conclude() calls.
    void watch(const std::shared_ptr<Operation> &operation);
    void unwatch(Operation *operation);
    // Completes an operation whose Work has been dropped, sooner or later.
    void adopt(const std::shared_ptr<Operation> &operation);
    // On a thread of its own: functions of the user, which may wait for the operation, do not hold it up.
    void complete_later(std::shared_ptr<Operation> operation);
    // On the futures' thread, which may run functions of the user.
    void settle_future(c10::intrusive_ptr<c10::ivalue::Future> future, c10::Device device, std::vector<at::Tensor> outputs,
                       std::exception_ptr error);
    void post_event(std::function<void()> task);

    // PyTorch's hooks by their numbers; an empty function removes one. Completion hooks are called with the key and the
    // milliseconds of each operation that ends without an error, abort hooks when a communicator has failed or is about to.
    using CompletionHook = std::function<void(uint64_t key, float duration)>;
    void set_completion_hook(int64_t number, CompletionHook hook);
    void set_abort_hook(int64_t number, std::function<void()> hook);
    void run_completion_hooks(uint64_t key, float duration);
    void run_abort_hooks();

    const int rank, size;
    const std::string name;
    const std::vector<int64_t> global_ranks;
    Milliseconds timeout;
    rondo_comm_t copy = nullptr;
    Messages messages;
    std::atomic<uint64_t> sequence{0};

    // Ends all groups of the process that are still there: asks for it, waits, and gives up on other ranks after the first time
    // and on the library after the second.
    static void close_all(Milliseconds for_others, Milliseconds for_library);

  private:
    // A runtime with the communicators of collectives.
    struct Side {
        rondo_t runtime = nullptr;
        rondo_comm_t world = nullptr;
        std::map<std::string, rondo_comm_t> keys;
    };
    // Makes a runtime on a GPU, or on the processor.
    void make(Side &side, const rondo_unique_id_t &id, c10::Device device);
    void open_gpu(); // on opener_
    // Collective over the group.
    void add_key(Side &side, const std::string &key);
    bool finalize();          // all runtimes; false if an operation is not complete
    void end();               // close()'s thread
    Clock::time_point look(); // the watchdog
    void expire(const std::shared_ptr<Operation> &operation);
    // Whether an operation that has timed out is watched for longer: it waits for the runtime on the GPU, and the error of
    // that, which has the same timeout, will name the ranks that have not come.
    bool postpone(Operation &operation);
    std::string report(); // what all ranks are doing; on the watchdog's thread
    // Ends the communicators whose time has come, and returns when the next one's comes.
    Clock::time_point abort_expired();
    // Throws the error of a call that returned this code.
    void check(const char *call, rondo_result_t code) const;
    // A blocking call on the communicator within the group's timeout; throws its error.
    void blocking(const char *name, rondo_comm_t comm, const std::function<rondo_result_t(rondo_request_t *)> &call);
    std::vector<rondo_comm_t> communicators();
    std::map<std::string, rondo_t> runtimes() const; // those that are there, by "cpu" and "cuda"
    bool sweep();                                    // polls what was adopted: whether nothing is left

    Side host_, gpu_;
    std::mutex opening_;            // gpu_ is being made, or gets a key
    mutable std::mutex mutex_;      // of what follows, of gpu_, and of the keys of both sides
    c10::Device device_{c10::kCPU}; // of gpu_, once it is asked for
    std::exception_ptr gpu_failure_;
    std::vector<std::string> keys_; // in the order of their registration, which is that of all ranks
    std::multimap<Clock::time_point, std::weak_ptr<Operation>> watched_;
    std::list<std::shared_ptr<Operation>> adopted_;
    // The watchdog's own: communicators of operations that have timed out, and when they are to end. They end somewhat later,
    // so that the other ranks' watchdogs find out too which ranks are missing.
    struct Expired {
        Clock::time_point end;
        std::weak_ptr<Operation> operation;
    };
    std::map<rondo_comm_t, Expired> expired_;
    std::string report_;
    Clock::time_point reported_ = Clock::time_point::min();
    std::mutex hooks_mutex_;
    std::map<int64_t, CompletionHook> completion_hooks_;
    std::map<int64_t, std::function<void()>> abort_hooks_;
    std::unique_ptr<Worker> events_, completions_, futures_, opener_;
    std::unique_ptr<StreamWatch> streams_;
    std::atomic<bool> aborted_{false}, closed_{false}, abandoned_{false};
};

} // namespace rondo_torch
