// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Synchronization

@testable import WeatherExample

/// Keeps what the program prints.
final class RecordingConsole: Sendable {
    private let written = Mutex((output: "", error: ""))

    var console: Console {
        Console(
            output: { text in self.written.withLock { $0.output += text } },
            error: { text in self.written.withLock { $0.error += text } }
        )
    }

    var output: String { written.withLock { $0.output } }
    var error: String { written.withLock { $0.error } }

    /// The program of the service, which the build puts beside the tests.
    static var service: URL {
        #if os(Linux)
            let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        #else
            // Tests run within another program there, which loads a bundle.
            let tests = Bundle(for: RecordingConsole.self).bundlePath
        #endif
        return URL(filePath: tests).deletingLastPathComponent().appending(path: "WeatherService")
    }
}
