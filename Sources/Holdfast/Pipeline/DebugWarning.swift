// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

/// Warns, in debug builds, about code that compiles but is probably a mistake: once for each type, on standard error.
enum DebugWarning {
    private static let told = Mutex<Set<ObjectIdentifier>>([])

    /// A hook for which every moment has been called and ran only the protocol's defaults.
    static func implementsNothing(_ type: any ServiceHook.Type) {
        tell(
            of: type,
            "implements none of onSchedule, onSuccess and onFailure. A method whose parameters differ from those of ServiceHook is a "
                + "different method, which nobody calls: compare their signatures."
        )
    }

    /// A retrier that asked for a retry and will not be asked about the next failure.
    static func isAskedOnce(_ type: any Retrier.Type) {
        tell(
            of: type,
            "was asked about one failure and will not be asked about the next, because `allowsMultipleRetries` is false by default. "
                + "Implement it: true to be asked again, false to keep this behavior without this warning."
        )
    }

    /// Whether there was a warning about one type since the process began; for tests.
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
