/* Shows the thread sanitizer what Swift's runtime orders; sanitize.py loads it before the tests.

   The runtime is not instrumented. So the sanitizer does not see a Mutex that several threads wait for (the compiler
   inlines and instruments the rest of it), nor that who finds an object referenced once comes after all who let go of
   it, nor that a continuation's result is read after it was written where it is resumed before it is awaited. It reports
   races that are none. Each function here stands before the runtime's own and says what that one does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Missing in a program that is not instrumented, such as `swift test` itself. */
void __tsan_acquire(void *) __attribute__((weak));
void __tsan_release(void *) __attribute__((weak));

static void before(void *place) {
    if (place && __tsan_release) __tsan_release(place);
}

static void after(void *place) {
    if (place && __tsan_acquire) __tsan_acquire(place);
}

/* Threads may look up at once: they find the same. */
static void *find(_Atomic(void *) *known, const char *name) {
    void *function = *known;
    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        if (function == NULL) {
            fprintf(stderr, "tsan-swift: this Swift runtime has no %s\n", name);
            abort();
        }
        *known = function;
    }
    return function;
}

#define NEXT(type, name)           \
    static _Atomic(void *) known;  \
    type next = find(&known, name)

/* Mutex, of the module Synchronization. */

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *mutex
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

typedef SWIFT void (*lock_function)(uint32_t, SELF);
typedef SWIFT bool (*try_function)(SELF);
typedef SWIFT void (*unlock_function)(SELF);

SWIFT void lock_slow(uint32_t thread, SELF) {
    NEXT(lock_function, LOCK);
    next(thread, mutex);
    after(mutex);
}

SWIFT bool try_lock_slow(SELF) {
    NEXT(try_function, TRY_LOCK);
    bool locked = next(mutex);
    if (locked) after(mutex);
    return locked;
}

SWIFT void unlock_slow(SELF) {
    NEXT(unlock_function, UNLOCK);
    before(mutex);
    next(mutex);
}

/* Reference counts. */

typedef void (*release_function)(void *);
typedef void (*release_many_function)(void *, uint32_t);
typedef bool (*unique_function)(void *);

/* A bridge object holds a heap object in its lower bits, or none where its highest bit is set. */
static void *heap_object(void *bridge) {
    uintptr_t bits = (uintptr_t)bridge;
    return bits >> 63 ? NULL : (void *)(bits & 0x00fffffffffffff8);
}

void swift_release(void *object) {
    NEXT(release_function, "swift_release");
    before(object);
    next(object);
}

void swift_release_n(void *object, uint32_t count) {
    NEXT(release_many_function, "swift_release_n");
    before(object);
    next(object, count);
}

void swift_bridgeObjectRelease(void *bridge) {
    NEXT(release_function, "swift_bridgeObjectRelease");
    before(heap_object(bridge));
    next(bridge);
}

void swift_bridgeObjectRelease_n(void *bridge, uint32_t count) {
    NEXT(release_many_function, "swift_bridgeObjectRelease_n");
    before(heap_object(bridge));
    next(bridge, count);
}

bool swift_isUniquelyReferenced_native(void *object) {
    NEXT(unique_function, "swift_isUniquelyReferenced_native");
    bool unique = next(object);
    if (unique) after(object);
    return unique;
}

bool swift_isUniquelyReferenced_nonNull_native(void *object) {
    NEXT(unique_function, "swift_isUniquelyReferenced_nonNull_native");
    bool unique = next(object);
    if (unique) after(object);
    return unique;
}

/* Continuations. Only the acquire that comes with an await stands before it: the await itself does not return here. */

#define ASYNC __attribute__((swiftasynccall))

typedef SWIFT void (*resume_function)(void *);
typedef SWIFT void (*fail_function)(void *, void *);
typedef ASYNC void (*await_function)(void *);

SWIFT void *swift_task_getCurrent(void) __attribute__((weak));

SWIFT void swift_continuation_resume(void *task) {
    NEXT(resume_function, "swift_continuation_resume");
    before(task);
    next(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
    NEXT(resume_function, "swift_continuation_throwingResume");
    before(task);
    next(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
    NEXT(fail_function, "swift_continuation_throwingResumeWithError");
    before(task);
    next(task, error);
}

ASYNC void swift_continuation_await(void *context) {
    NEXT(await_function, "swift_continuation_await");
    after(swift_task_getCurrent());
    return next(context);
}
