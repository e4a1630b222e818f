// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// The weather service as a child process, which ends when its standard input is closed.
final class ServiceProcess: Sendable {
    /// The URL of the service.
    let url: URL
    private let end: @Sendable () -> Void

    private init(url: URL, end: @escaping @Sendable () -> Void) {
        self.url = url
        self.end = end
    }

    deinit { end() }

    /// Ends the service. Idempotent.
    func stop() { end() }

    /// The program of the service, in the directory of this program.
    static var program: URL {
        let own = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        return own.resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent("WeatherService")
    }

    /// Starts the service and waits until it has printed its port.
    ///
    /// - Throws: a ``CommandFailure`` of status 1.
    static func start(_ program: URL, options: [String]) async throws -> ServiceProcess {
        // Only these systems have child processes.
        #if os(macOS) || os(Linux)
            let process = Process()
            let input = Pipe()
            let output = Pipe()
            process.executableURL = program
            process.arguments = options
            process.standardInput = input
            process.standardOutput = output
            do {
                try process.run()
            } catch {
                throw CommandFailure.service(
                    "\(program.path) cannot be started (\(error.localizedDescription)); build it with "
                        + "`swift build --product WeatherService`, or give the URL of a running one with --url"
                )
            }
            let end: @Sendable () -> Void = { try? input.fileHandleForWriting.close() }
            let line = await firstLine(of: output.fileHandleForReading)
            guard let port = UInt16(line), let url = URL(string: "http://127.0.0.1:\(port)") else {
                end()
                throw CommandFailure.service("\(program.path) did not print its port; run it manually to see why")
            }
            return ServiceProcess(url: url, end: end)
        #else
            throw CommandFailure.service(
                "this system has no child processes; give the URL of a running service with --url"
            )
        #endif
    }

    private static func firstLine(of handle: FileHandle) async -> String {
        await withCheckedContinuation { continuation in
            // Reading blocks, which is not allowed on the threads of tasks.
            Thread.detachNewThread {
                var bytes = Data()
                while !bytes.contains(UInt8(ascii: "\n")) {
                    let more = handle.availableData
                    if more.isEmpty { break }
                    bytes += more
                }
                let text = String(decoding: bytes, as: UTF8.self)
                continuation.resume(returning: String(text.prefix { !$0.isNewline }))
            }
        }
    }
}

#if canImport(FoundationNetworking)
    // On Linux, Foundation has URLSession in a separate module.
    internal import FoundationNetworking
#endif

/// What the service has received and sent, by its own count.
struct ServiceLedger: Sendable, Equatable, Codable {
    /// Requests by kind.
    var stations = 0
    var current = 0
    var forecast = 0
    var reports = 0
    var other = 0
    /// Bytes of content sent.
    var bytes = 0
    /// Responses by kind.
    var notModified = 0
    var tooManyRequests = 0
    var unavailable = 0

    /// All requests.
    var requests: Int { stations + current + forecast + reports + other }

    /// The difference from an earlier reading.
    func since(_ earlier: ServiceLedger) -> ServiceLedger {
        ServiceLedger(
            stations: stations - earlier.stations,
            current: current - earlier.current,
            forecast: forecast - earlier.forecast,
            reports: reports - earlier.reports,
            other: other - earlier.other,
            bytes: bytes - earlier.bytes,
            notModified: notModified - earlier.notModified,
            tooManyRequests: tooManyRequests - earlier.tooManyRequests,
            unavailable: unavailable - earlier.unavailable
        )
    }

    /// Reads the counts of the service at `url`, which does not count that request.
    ///
    /// - Throws: a ``CommandFailure`` of status 1.
    static func read(of url: URL, by session: URLSession) async throws -> ServiceLedger {
        do {
            let (data, _) = try await session.data(from: url.appendingPathComponent("ledger"))
            return try JSONDecoder().decode(ServiceLedger.self, from: data)
        } catch {
            throw CommandFailure.service("no weather service at \(url.absoluteString): \(error)")
        }
    }
}
