// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// What happens to calls as an asynchronous sequence, for those who would rather iterate than be called.
///
/// ```
/// let stream = EventStream(limit: 1000)
/// configuration.observers.append(stream)
/// for await event in stream.events { print(event) }
/// ```
///
/// Holds no more than its limit: whoever is slower than the calls loses the oldest events, and ``droppedCount`` says how many.
/// A call is never held up.
public final class EventStream: EventObserver {
    /// The events, in the order in which they happened; for one reader. Ends after ``finish()``, or when its stream is let go by
    /// every configuration that lists it.
    public let events: AsyncStream<ServiceEvent>

    private let continuation: AsyncStream<ServiceEvent>.Continuation
    private let names: Set<ServiceEvent.Name>?
    private let dropped = Atomic<Int>(0)

    /// A stream without events.
    ///
    /// - Parameters:
    ///   - limit: how many events wait for the reader at most, 1 at least; 1,024 by default.
    ///   - names: which events it takes; nil, the default: all.
    public init(limit: Int = 1024, names: Set<ServiceEvent.Name>? = nil) {
        self.names = names
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(max(limit, 1)))
    }

    deinit {
        continuation.finish()
    }

    /// How many events were lost because nobody had read them in time.
    public var droppedCount: Int { dropped.load(ordering: .relaxed) }

    public func observe(_ event: ServiceEvent) {
        if let names, !names.contains(event.name) { return }
        if case .dropped = continuation.yield(event) { dropped.add(1, ordering: .relaxed) }
    }

    /// Ends the sequence, once what waits in it has been read; further events are ignored.
    public func finish() {
        continuation.finish()
    }
}
