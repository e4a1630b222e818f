// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation

/// A program of this package, which the build puts beside the tests.
package enum BuiltProgram {
    /// Its file; whether it was built nobody looks.
    package static func url(_ name: String) -> URL {
        #if os(Linux)
            let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        #else
            // Another program loads the tests there, as a bundle that stands beside the products.
            let tests = Bundle(for: Mark.self).bundlePath
        #endif
        return URL(filePath: tests).deletingLastPathComponent().appending(path: name)
    }

    private final class Mark {}
}
