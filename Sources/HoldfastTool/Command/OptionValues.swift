// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics

    /// A number of bytes as people write it: `512`, `64MB`, `1.5GiB`.
    ///
    /// kB, MB, GB and TB are powers of 1,000, KiB, MiB, GiB and TiB of 1,024; case does not matter, and B may be
    /// omitted.
    struct ByteCount: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The number.
        let bytes: Int

        init(_ bytes: Int) {
            self.bytes = bytes
        }

        init?(argument: String) {
            let text = argument.lowercased()
            let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            var unit = text.dropFirst(digits.count).drop { $0 == " " }
            if unit.hasSuffix("b") { unit = unit.dropLast() }
            guard let number = Double(digits), let factor = ByteCount.factors[String(unit)] else { return nil }
            let product = (number * factor).rounded()
            guard product < Double(Int.max / 2) else { return nil }
            bytes = Int(product)
        }

        /// The number with the largest unit of 1,000 that leaves at least 1, to one decimal.
        var description: String {
            var (value, unit) = (Double(bytes), "B")
            for next in ["kB", "MB", "GB", "TB"] where value >= 999.95 || (unit == "B" && value >= 1_000) {
                value /= 1_000
                unit = next
            }
            if unit == "B" { return "\(bytes) B" }
            let tenths = Int((value * 10).rounded())
            return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
        }

        var defaultValueDescription: String { description.replacing(" ", with: "") }

        private static let factors: [String: Double] = [
            "": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
            "ki": 1_024, "mi": 1_048_576, "gi": 1_073_741_824, "ti": 1_099_511_627_776,
        ]
    }

    /// A length of time as people write it: `2` (seconds), `250ms`, `1.5s`, `10m`, `1h`, `7d`.
    struct TimeSpan: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The length; never negative.
        let duration: Duration

        init(_ duration: Duration) {
            self.duration = duration
        }

        init?(argument: String) {
            let digits = argument.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            guard let number = Double(digits), let unit = TimeSpan.units[String(argument.dropFirst(digits.count))]
            else {
                return nil
            }
            let seconds = number * unit
            // Larger values could not be represented as an instant.
            guard seconds <= 1e9 else { return nil }
            duration = .milliseconds(Int64((seconds * 1_000).rounded()))
        }

        /// The length in the largest unit of which it is a whole number, at least milliseconds.
        var description: String {
            let (seconds, fraction) = duration.components
            let milliseconds = seconds * 1_000 + fraction / 1_000_000_000_000_000
            for (unit, length) in [("d", Int64(86_400_000)), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
            where milliseconds > 0 && milliseconds % length == 0 {
                return "\(milliseconds / length)\(unit)"
            }
            return milliseconds == 0 ? "0s" : "\(milliseconds)ms"
        }

        private static let units: [String: Double] = ["": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400]
    }

    /// The address to listen on, as people write it: `127.0.0.1:8080`, `[::1]:8080`, `:8080` and `8080` for this
    /// machine only, `unix:PATH` for a socket in the file system, and `systemd` for the socket from the service
    /// manager.
    struct ListenAddress: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The host; an IPv6 address without brackets.
        let host: String
        /// The port; 0 for any free one.
        let port: Int

        init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// Whether it is a socket and not a host with a port.
        var isSocket: Bool { host.hasPrefix("unix:") || host == "systemd" }

        /// The address for people; a URL if possible.
        var link: String { isSocket ? host : "http://\(self)" }

        /// The host in the form that the proxy takes.
        ///
        /// - Throws: ``CommandFailure`` if there is no socket from a service manager.
        func resolved(_ environment: [String: String]) throws(CommandFailure) -> String {
            guard host == "systemd" else { return host }
            guard environment["LISTEN_PID"] == "\(ProcessInfo.processInfo.processIdentifier)",
                let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0
            else {
                throw .usage("--listen systemd: there is no socket from systemd; start this with a .socket unit")
            }
            return "fd:3"
        }

        init?(argument: String) {
            if argument == "systemd" || argument.hasPrefix("unix:") && argument.utf8.count > 5 {
                self.init(host: argument, port: 0)
                return
            }
            var host = "127.0.0.1"
            var digits = argument[...]
            if let colon = argument.lastIndex(of: ":") {
                digits = argument[argument.index(after: colon)...]
                let name = argument[..<colon]
                if name.hasPrefix("["), name.hasSuffix("]"), name.contains(":") {
                    host = String(name.dropFirst().dropLast())
                } else if !name.isEmpty {
                    guard !name.contains(where: { ":[]/@".contains($0) || $0.isWhitespace }) else { return nil }
                    host = String(name)
                }
            }
            guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let port = Int(digits),
                port <= 65_535
            else { return nil }
            self.init(host: host, port: port)
        }

        /// The address as in a URL.
        var description: String {
            if isSocket { return host }
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }

    /// For whom a cache stores.
    enum CacheKind: String, ExpressibleByArgument, CaseIterable, Sendable {
        case `private`, shared

        var mode: CacheOptions.Mode { self == .shared ? .shared : .private }
    }

    extension CacheRules {
        /// Reads the rules in the file of `--rules`.
        ///
        /// - Throws: ``CommandFailure`` with the place of the error.
        init(ofOption file: String) throws(CommandFailure) {
            do {
                self = try CacheRules(contentsOf: URL(fileURLWithPath: file))
            } catch {
                let text = (error as? CacheRulesError)?.description ?? SystemText.of(error)
                throw CommandFailure.usage("--rules \(file): \(text)")
            }
        }
    }
#endif
