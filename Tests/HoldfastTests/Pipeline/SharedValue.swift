// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Synchronization

/// A value that a test changes while closures look at it.
final class SharedValue<Value: Sendable>: Sendable {
    private let current: Mutex<Value>

    init(_ value: Value) {
        current = Mutex(value)
    }

    var value: Value { current.withLock { $0 } }

    func set(_ value: Value) {
        current.withLock { $0 = value }
    }
}
