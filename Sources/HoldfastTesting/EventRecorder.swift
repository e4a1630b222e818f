// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
private import Synchronization

/// Records every event that it observes, in order.
public final class EventRecorder: EventObserver {
    private let recorded = Mutex<[ServiceEvent]>([])

    /// A recorder without events.
    public init() {}

    public func observe(_ event: ServiceEvent) { recorded.withLock { $0.append(event) } }

    /// Every event so far.
    public var events: [ServiceEvent] { recorded.withLock { $0 } }

    /// The names of the events so far.
    public var names: [ServiceEvent.Name] { events.map(\.name) }

    /// The events with one name.
    public func events(_ name: ServiceEvent.Name) -> [ServiceEvent] { events.filter { $0.name == name } }
}
