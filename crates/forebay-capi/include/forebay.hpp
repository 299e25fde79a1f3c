/* forebay.h for C++17: handles that free themselves, and permits that can be moved and not copied.
 *
 * Functions that can fail throw forebay::Error; with -fno-exceptions, or FOREBAY_NO_EXCEPTIONS, each
 * has a form that takes an Error and returns something empty instead. */
#ifndef FOREBAY_HPP
#define FOREBAY_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "forebay.h"

#if !defined(FOREBAY_NO_EXCEPTIONS) && defined(__cpp_exceptions)
#define FOREBAY_EXCEPTIONS 1
#include <stdexcept>
#endif

namespace forebay {

/* Structures that begin with their size. */
template <class T>
T init() noexcept {
    T value{};
    value.size = sizeof(T);
    return value;
}

/* What went wrong: a code, the message, and the number of the system. */
class Error
#ifdef FOREBAY_EXCEPTIONS
    : public std::exception
#endif
{
public:
    Error() noexcept = default;
    /* Of the calling thread's last error. */
    explicit Error(int code) : code_(code), errno_(forebay_last_errno()), text_(forebay_last_error(nullptr)) {}

    int code() const noexcept { return code_; }
    int system_code() const noexcept { return errno_; }
    explicit operator bool() const noexcept { return code_ < 0; }
    const char *what() const noexcept
#ifdef FOREBAY_EXCEPTIONS
        override
#endif
    {
        return text_.c_str();
    }

private:
    int code_ = FOREBAY_OK;
    int errno_ = 0;
    std::string text_;
};

namespace detail {

inline Error checked(int code) { return code < 0 ? Error(code) : Error(); }

#ifdef FOREBAY_EXCEPTIONS
inline void check(int code) {
    if (code < 0)
        throw Error(code);
}
#endif

}  // namespace detail

/* Nanoseconds to wait; none is for ever. */
using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout forever{FOREBAY_FOREVER};

/* A handle, which is freed with this. */
class Handle {
public:
    Handle() noexcept = default;
    explicit Handle(std::uint64_t handle) noexcept : handle_(handle) {}
    Handle(Handle &&other) noexcept : handle_(other.release()) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { reset(); }

    std::uint64_t get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != 0; }
    /* Gives the handle away: it is not freed here. */
    std::uint64_t release() noexcept { return std::exchange(handle_, 0); }
    void reset(std::uint64_t handle = 0) noexcept {
        if (std::uint64_t before = std::exchange(handle_, handle))
            forebay_free(before);
    }

private:
    std::uint64_t handle_ = 0;
};

/* The permission to do one I/O now. The I/O counts as done when it is destroyed. */
class Permit : public Handle {
public:
    using Handle::Handle;

    /* The I/O has ended: the bytes that were moved, or a negative number. */
    void complete(std::int64_t result) noexcept { forebay_complete(release(), result); }
};

/* Makes a class the calling thread's, until it is destroyed in that thread. The class outlives it. */
class Entered {
public:
    Entered(Entered &&other) noexcept : class_(std::exchange(other.class_, 0)) {}
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;
    ~Entered() {
        if (class_ != 0)
            forebay_class_leave(class_);
    }

private:
    friend class Class;
    explicit Entered(forebay_class of) noexcept : class_(forebay_class_enter(of) == FOREBAY_OK ? of : 0) {}
    forebay_class class_;
};

/* What the forms that take an Error share: they set it, and return what is empty if it is set. */
#define FOREBAY_MAKE_(type, call) \
    std::uint64_t made = 0; \
    error = detail::checked(call); \
    return type(error ? 0 : made)

/* A priority class. */
class Class : public Handle {
public:
    using Handle::Handle;

    Permit admit(int op, std::uint64_t len, Timeout timeout, Error &error) const {
        FOREBAY_MAKE_(Permit, forebay_admit(get(), op, len, timeout.count(), &made));
    }
    /* Another permit, for who holds one. */
    Permit admit_nested(const Permit &held, int op, std::uint64_t len, Timeout timeout, Error &error) const {
        FOREBAY_MAKE_(Permit, forebay_admit_nested(held.get(), get(), op, len, timeout.count(), &made));
    }
    std::size_t read(int fd, void *data, std::size_t len, std::uint64_t offset, Error &error) const {
        std::size_t done = 0;
        error = detail::checked(forebay_read(get(), fd, data, len, offset, &done));
        return done;
    }
    Error prefetch(int fd, std::uint64_t offset, std::uint64_t len) const {
        return detail::checked(forebay_prefetch(get(), fd, offset, len));
    }
    void sync(int fd, Error &error) const { error = detail::checked(forebay_sync(get(), fd, 0)); }
    Error set_shares(std::uint32_t shares) const { return detail::checked(forebay_set_shares(get(), shares)); }
    Error remove() const { return detail::checked(forebay_remove(get())); }
    [[nodiscard]] Entered enter() const noexcept { return Entered(get()); }

#ifdef FOREBAY_EXCEPTIONS
    [[nodiscard]] Permit admit(int op, std::uint64_t len, Timeout timeout = forever) const {
        std::uint64_t permit = 0;
        detail::check(forebay_admit(get(), op, len, timeout.count(), &permit));
        return Permit(permit);
    }
    std::size_t read(int fd, void *data, std::size_t len, std::uint64_t offset) const {
        std::size_t done = 0;
        detail::check(forebay_read(get(), fd, data, len, offset, &done));
        return done;
    }
    void sync(int fd) const { detail::check(forebay_sync(get(), fd, 0)); }
#endif
};

/* Writes to a file through the page cache. What is dirty is handed over when it is destroyed. */
class Writer : public Handle {
public:
    using Handle::Handle;

    static Writer open(const Class &of, int fd, std::uint64_t dirty_max, Error &error) {
        FOREBAY_MAKE_(Writer, forebay_writer_new(of.get(), fd, dirty_max, &made));
    }
    void write(const void *data, std::size_t len, std::int64_t offset, Error &error) {
        error = detail::checked(forebay_write(get(), data, len, offset));
    }
    void sync(Error &error) { error = detail::checked(forebay_writer_sync(get(), 0)); }

#ifdef FOREBAY_EXCEPTIONS
    Writer(const Class &of, int fd, std::uint64_t dirty_max = 0) {
        std::uint64_t made = 0;
        detail::check(forebay_writer_new(of.get(), fd, dirty_max, &made));
        reset(made);
    }
    void write(const void *data, std::size_t len, std::int64_t offset = FOREBAY_OFFSET_NEXT) {
        detail::check(forebay_write(get(), data, len, offset));
    }
    void sync() { detail::check(forebay_writer_sync(get(), 0)); }
#endif
};

/* Disks, and the classes that share them. */
class Scheduler : public Handle {
public:
    using Handle::Handle;

    static Scheduler from_file(std::string_view path, std::uint32_t flags, Error &error) {
        FOREBAY_MAKE_(Scheduler, forebay_scheduler_from_file(path.data(), path.size(), flags, &made));
    }
    static Scheduler from_rates(const forebay_disk &disk, std::uint32_t flags, Error &error) {
        FOREBAY_MAKE_(Scheduler, forebay_scheduler_from_rates(&disk, 1, flags, &made));
    }
    Class add_class(std::string_view name, std::uint32_t shares, Error &error) const {
        FOREBAY_MAKE_(Class, forebay_class_add(get(), name.data(), name.size(), shares, &made));
    }
    Class find_class(std::string_view name, Error &error) const {
        FOREBAY_MAKE_(Class, forebay_class_find(get(), name.data(), name.size(), &made));
    }
    /* In the class that the calling thread has entered. */
    Permit admit(int op, std::uint64_t len, Timeout timeout, Error &error) const {
        FOREBAY_MAKE_(Permit, forebay_admit(get(), op, len, timeout.count(), &made));
    }

#ifdef FOREBAY_EXCEPTIONS
    static Scheduler from_file(std::string_view path, std::uint32_t flags = 0) {
        std::uint64_t made = 0;
        detail::check(forebay_scheduler_from_file(path.data(), path.size(), flags, &made));
        return Scheduler(made);
    }
    static Scheduler from_rates(const forebay_disk &disk, std::uint32_t flags = 0) {
        std::uint64_t made = 0;
        detail::check(forebay_scheduler_from_rates(&disk, 1, flags, &made));
        return Scheduler(made);
    }
    Class add_class(std::string_view name, std::uint32_t shares) const {
        std::uint64_t made = 0;
        detail::check(forebay_class_add(get(), name.data(), name.size(), shares, &made));
        return Class(made);
    }
    Class find_class(std::string_view name) const {
        std::uint64_t made = 0;
        detail::check(forebay_class_find(get(), name.data(), name.size(), &made));
        return Class(made);
    }
    [[nodiscard]] Permit admit(int op, std::uint64_t len, Timeout timeout = forever) const {
        std::uint64_t permit = 0;
        detail::check(forebay_admit(get(), op, len, timeout.count(), &permit));
        return Permit(permit);
    }
    std::string open_metrics() const {
        std::string text;
        std::size_t len = 0;
        for (;;) {
            int code = forebay_snapshot_openmetrics(get(), text.data(), text.size(), &len);
            if (code != FOREBAY_E_TOO_SMALL) {
                detail::check(code);
                text.resize(len);
                return text;
            }
            text.resize(len + len / 4);
        }
    }
#endif
};

#undef FOREBAY_MAKE_

}  // namespace forebay

#endif
