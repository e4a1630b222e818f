// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One body on its way, and what it took.
struct Transfer {
    enum Direction: String {
        case down, up
        /// Down into a file.
        case download
    }

    /// What came of it.
    struct Report: Encodable {
        /// The bytes that were read, or that the server says it took.
        var bytes: Int
        /// Whether each byte that was read was right.
        var isIntact: Bool
        /// By how much the memory of this process grew at most.
        var growth: Int
    }

    private let transport: any Transport
    private let url: URL
    private let bytes: Int
    private let pauses: Bool

    init(_ transport: any Transport, _ url: URL, _ bytes: Int, pauses: Bool) {
        self.transport = transport
        self.url = url
        self.bytes = bytes
        self.pauses = pauses
    }

    func run(_ direction: Direction) async throws -> Report {
        guard let warmUp = URL(string: "/period", relativeTo: url) else { throw URLError(.badURL) }
        let first = try await transport.send(URLRequest(url: warmUp.absoluteURL), body: .none, context: CallContext())
        let pattern = RepeatedBytes(period: try await first.body.collect())
        let memory = MemoryGrowth()
        var report = Report(bytes: 0, isIntact: true, growth: 0)
        switch direction {
        case .down:
            let response = try await transport.send(URLRequest(url: url), body: .none, context: CallContext())
            for try await chunk in response.body {
                if report.bytes == 0 { await pause() }
                if !pattern.holds(chunk, at: report.bytes) { report.isIntact = false }
                report.bytes += chunk.count
            }
        case .download:
            let (file, _) = try await Pipeline(transport: transport).download(from: url)
            report.growth = memory.peak
            let handle = try FileHandle(forReadingFrom: file)
            while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
                if !pattern.holds(ByteChunk(copying: data), at: report.bytes) { report.isIntact = false }
                report.bytes += data.count
            }
            try FileManager.default.removeItem(at: file)
            return report
        case .up:
            var request = URLRequest(url: url)
            request.httpMethod = "POST"
            let (length, pause) = (bytes, pause)
            let body = RequestBody.factory(length: length) {
                RepeatedSource(pattern, length, afterFirst: pause)
            }
            let response = try await transport.send(request, body: body, context: CallContext())
            report.bytes = Int(String(decoding: try await response.body.collect(), as: UTF8.self)) ?? -1
        }
        report.growth = memory.peak
        return report
    }

    @Sendable private func pause() async {
        guard pauses else { return }
        print("paused")
        fflush(nil)
        // A line is waited for on a thread that may wait.
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                _ = readLine()
                continuation.resume()
            }
        }
    }
}

/// Bytes that repeat.
struct RepeatedBytes: Sendable {
    private let twice: ByteChunk
    let period: Int

    init(period: ByteChunk) {
        self.period = period.count
        twice = ByteChunk(period.array + period.array)
    }

    /// At most a period of them, from `position` on.
    func bytes(_ count: Int, at position: Int) -> ByteChunk {
        let start = position % period
        return twice[start..<(start + min(count, period))]
    }

    /// Whether they stand in `chunk`, from `position` on.
    func holds(_ chunk: ByteChunk, at position: Int) -> Bool {
        chunk.withUnsafeBytes { read in
            var done = 0
            while done < read.count {
                let expected = bytes(read.count - done, at: position + done)
                let part = UnsafeRawBufferPointer(rebasing: read[done..<(done + expected.count)])
                let isRight = expected.withUnsafeBytes { expected in
                    guard let left = part.baseAddress, let right = expected.baseAddress else { return false }
                    return memcmp(left, right, part.count) == 0
                }
                guard isRight else { return false }
                done += expected.count
            }
            return true
        }
    }
}

/// Hands out repeated bytes.
private actor RepeatedPosition {
    private var position = 0

    func advance(within count: Int, _ pattern: RepeatedBytes) -> (chunk: ByteChunk?, isSecond: Bool) {
        guard position < count else { return (nil, false) }
        let chunk = pattern.bytes(count - position, at: position)
        defer { position += chunk.count }
        return (chunk, position == chunk.count)
    }
}

private struct RepeatedSource: ByteSource {
    private let pattern: RepeatedBytes
    private let count: Int
    private let afterFirst: @Sendable () async -> Void
    private let position = RepeatedPosition()

    init(_ pattern: RepeatedBytes, _ count: Int, afterFirst: @escaping @Sendable () async -> Void) {
        self.pattern = pattern
        self.count = count
        self.afterFirst = afterFirst
    }

    func next() async throws -> ByteChunk? {
        let (chunk, isSecond) = await position.advance(within: count, pattern)
        if isSecond { await afterFirst() }
        return chunk
    }

    func cancel() {}
}
