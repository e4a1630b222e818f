// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting

/// A small process that answers as a weather service does, for the weather example and its tests.
///
/// Prints its port on the first line of standard output, and serves until its standard input ends.
@main
enum WeatherService {
    static func main() {
        do {
            let options = try ServiceOptions(parsing: CommandLine.arguments.dropFirst())
            let server = try start(options)
            FileHandle.standardOutput.write(Data("\(server.port)\n".utf8))
            while readLine() != nil {}
            server.stop()
        } catch let usage as ServiceOptions.Usage {
            FileHandle.standardError.write(Data("WeatherService: \(usage.description)\n".utf8))
            exit(64)
        } catch {
            FileHandle.standardError.write(Data("WeatherService: \(error)\n".utf8))
            exit(1)
        }
    }

    /// Starts the service.
    ///
    /// - Parameters:
    ///   - options: how it behaves.
    ///   - seconds: the time that rate limits go by.
    static func start(
        _ options: ServiceOptions,
        seconds: @escaping @Sendable () -> Double = { ProcessInfo.processInfo.systemUptime }
    ) throws -> LoopbackServer {
        let api = WeatherAPI(options, seconds: seconds)
        return try LoopbackServer.start { request in
            // Each connection has a thread of its own, so a wait here holds nobody else up.
            if options.delay > 0 && request.path != "/ledger" { Thread.sleep(forTimeInterval: options.delay) }
            return api.answer(request)
        }
    }
}
