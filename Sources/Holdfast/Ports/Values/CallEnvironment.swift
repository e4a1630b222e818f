// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What all calls of a pipeline have in common.
final class CallEnvironment: Sendable {
    let clock: any HoldfastClock
    let transport: any Transport
    let observers: [any EventObserver]
    let background: BackgroundTasks

    init(
        clock: any HoldfastClock,
        transport: any Transport,
        observers: [any EventObserver],
        background: BackgroundTasks
    ) {
        self.clock = clock
        self.transport = transport
        self.observers = observers
        self.background = background
    }
}
