// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Moves a long body through one client, in a process of its own, and prints one line of JSON on what that took.
///
///     TransferChild CLIENT URL (down | up | download) BYTES [pause]
///
/// The server gives one period of its pattern for a GET of URL with the path `/period`, which warms up the client, and serves or
/// takes BYTES of the pattern at URL. With `pause`, it prints "paused" once the first chunk has been read or handed out, and goes
/// on when a line comes in. A download goes into a file, which is compared and removed afterwards; it does not pause.
@main
struct TransferChild {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count >= 5, let url = URL(string: arguments[2]), let bytes = Int(arguments[4]),
            let direction = Transfer.Direction(rawValue: arguments[3])
        else {
            print("usage: TransferChild CLIENT URL (down | up | download) BYTES [pause]")
            exit(64)
        }
        guard let client = makeClient(named: arguments[1]) else {
            print("no client is called \(arguments[1]), or the trait that brings it is off")
            exit(69)
        }
        do {
            let pauses = arguments.contains("pause")
            let report = try await Transfer(client.transport, url, bytes, pauses: pauses).run(direction)
            await client.close()
            print(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}
