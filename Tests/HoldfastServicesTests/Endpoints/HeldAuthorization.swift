// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastServices
import Synchronization

/// A credential that tests change.
final class HeldAuthorization: Sendable {
    private let held: Mutex<Authorization>

    init(_ value: Authorization = .none) { held = Mutex(value) }

    var value: Authorization {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}
