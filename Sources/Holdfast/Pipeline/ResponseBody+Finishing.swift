// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ResponseBody {
    /// Reads a short body that nobody asked for to its end, which lets a cache beneath keep it and the connection serve again.
    ///
    /// A body that is long or slow is given up.
    func finish(on clock: any HoldfastClock) async {
        guard let source else { return }
        let longest = ResponseBody.longestUnasked
        guard length.map({ $0 <= longest }) ?? true else { return discard() }
        let end = clock.now.advanced(by: ResponseBody.patience)
        do {
            try await withDeadline(end, on: clock, discard: { (_: Void) in }) {
                var count = 0
                while count <= longest, let chunk = try await source.next() { count += chunk.count }
            }
        } catch {
            // The response itself has come; what became of its body changes nothing.
        }
        discard()
    }

    private static var longestUnasked: Int { 64 << 10 }
    private static var patience: Duration { .seconds(1) }
}
