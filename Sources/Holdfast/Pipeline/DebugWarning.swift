// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

/// Tells, in debug builds, of what compiles and is probably a mistake: each once for a type, on standard error.
enum DebugWarning {
    private static let told = Mutex<Set<ObjectIdentifier>>([])

    /// A hook whose moments have all been called, and all ran as the protocol's defaults.
    static func implementsNothing(_ type: any ServiceHook.Type) {
        tell(
            of: type,
            "implements none of onSchedule, onSuccess and onFailure. A method whose parameters differ from those of ServiceHook is "
                + "another method, which nobody calls: compare their signatures."
        )
    }

    /// A retrier that asked for a retry and is not asked about the next failure.
    static func isAskedOnce(_ type: any Retrier.Type) {
        tell(
            of: type,
            "was asked about one failure and is not asked about the next, because `allowsMultipleRetries` is false by default. "
                + "Implement it: true to be asked again, false to keep this behavior without this warning."
        )
    }

    /// What was told since the process began, of one type; for tests.
    static func wasTold(of type: Any.Type) -> Bool {
        told.withLock { $0.contains(ObjectIdentifier(type)) }
    }

    private static func tell(of type: Any.Type, _ text: @autoclosure () -> String) {
        #if DEBUG
            guard told.withLock({ $0.insert(ObjectIdentifier(type)).inserted }) else { return }
            FileHandle.standardError.write(Data("Holdfast: \(type) \(text())\n".utf8))
        #endif
    }
}
