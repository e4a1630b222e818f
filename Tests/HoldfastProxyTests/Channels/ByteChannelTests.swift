// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastTesting
    import NIOCore
    import NIOEmbedded
    import NIOHTTP2
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    @Suite("ByteChannel", .timeLimit(.minutes(20)))
    struct ByteChannelTests {
        /// A channel whose event loop moves when the test says so.
        private struct Rig {
            let channel: NIOAsyncTestingChannel
            let bytes: ByteChannel
            let reads: ReadCounter

            init() async throws {
                let channel = NIOAsyncTestingChannel()
                let reads = ReadCounter()
                self.channel = channel
                self.reads = reads
                bytes = try await channel.testingEventLoop.executeInContext {
                    try channel.pipeline.syncOperations.addHandler(reads.makeHandler())
                    return try ByteChannel.attach(to: channel)
                }
                try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).get()
            }

            func arrive(_ text: String) async throws { try await channel.arrive(text) }
            func endInput() async throws { try await channel.endInput() }
            func setWritable(_ isWritable: Bool) async throws { try await channel.setWritable(isWritable) }
            func settle() async { await channel.settle() }
            func sent() async throws -> String { try await channel.sent() }

            /// Runs work on the event loop, as the server does.
            func onLoop<Value: Sendable>(
                _ work: @escaping @Sendable (ByteChannel) async throws -> Value
            ) -> Task<Value, any Error> {
                let bytes = bytes
                return Task(executorPreference: EventLoopExecutor(bytes.eventLoop)) { try await work(bytes) }
            }
        }

        @Test("A stream of HTTP/2 that closes without its end was cut short")
        func streamCloses() async throws {
            let channel = NIOAsyncTestingChannel()
            let bytes = try await channel.testingEventLoop.executeInContext {
                try ByteChannel.attach(to: channel, isSocket: false)
            }
            try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).get()
            let reader = Task { try await bytes.read() }
            await channel.settle()
            try await channel.close().get()
            let fault = await #expect(throws: ChannelFault.self) { try await reader.value }
            #expect(fault?.kind == .broken)
        }

        /// Counts how often the channel is asked for bytes.
        private final class ReadCounter: Sendable {
            let count = Atomic(0)

            var value: Int { count.load(ordering: .relaxed) }

            func makeHandler() -> some ChannelOutboundHandler { Handler(self) }

            private final class Handler: ChannelOutboundHandler {
                typealias OutboundIn = ByteBuffer
                let counter: ReadCounter

                init(_ counter: ReadCounter) {
                    self.counter = counter
                }

                func read(context: ChannelHandlerContext) {
                    counter.count.add(1, ordering: .relaxed)
                    context.read()
                }
            }
        }

        @Test("Bytes come in order, those put back first, and then nil", arguments: [true, false])
        func reads(onLoop: Bool) async throws {
            let rig = try await Rig()
            let work: @Sendable (ByteChannel) async throws -> [String] = { bytes in
                var texts: [String] = []
                var first = try await bytes.read() ?? ByteBuffer()
                texts.append(first.readString(length: 1) ?? "")
                bytes.putBack(first)
                while let more = try await bytes.read() { texts.append(String(buffer: more)) }
                let isAtEnd = try await bytes.read() == nil
                return texts + ["\(isAtEnd)"]
            }
            let bytes = rig.bytes
            let reader = onLoop ? rig.onLoop(work) : Task { try await work(bytes) }
            try await rig.arrive("abc")
            await rig.settle()
            try await rig.arrive("def")
            try await rig.endInput()
            #expect(try await reader.value.joined(separator: "|").replacing("bc|def", with: "bcdef") == "a|bcdef|true")
        }

        @Test("Nothing is requested beyond one buffer until somebody reads it")
        func lookAhead() async throws {
            let rig = try await Rig()
            #expect(rig.reads.value == 1)
            try await rig.arrive("a")
            #expect(rig.reads.value == 1)
            _ = try await rig.onLoop { try await $0.read() }.value
            #expect(rig.reads.value == 2)
            try await rig.arrive("b")
            var taken = try #require(try await rig.onLoop { try await $0.read() }.value)
            #expect(rig.reads.value == 3)
            for _ in 0..<5 {
                rig.bytes.putBack(taken)
                taken = try #require(try await rig.onLoop { try await $0.read() }.value)
            }
            // What was put back and read again is no reason to ask for more.
            #expect(rig.reads.value == 3)
        }

        @Test("A read that waits too long ends at its deadline and loses nothing; one timer serves all reads")
        func readDeadline() async throws {
            let rig = try await Rig()
            for second in [10, 10, 5, 20] as [Int64] {
                let waiting = rig.onLoop { bytes in
                    await #expect(throws: ChannelFault.self) {
                        try await bytes.read(by: bytes.eventLoop.now + .seconds(second))
                    }
                    return bytes.eventLoop.now
                }
                await rig.settle()
                let start = rig.channel.testingEventLoop.now
                await rig.channel.testingEventLoop.advanceTime(by: .seconds(60))
                #expect(try await waiting.value - start == .seconds(second))
            }
            let reading = rig.onLoop { try await $0.read(by: $0.eventLoop.now + .seconds(10)) }
            await rig.settle()
            await rig.channel.testingEventLoop.advanceTime(by: .seconds(9))
            try await rig.arrive("x")
            #expect(try await reading.value == ByteBuffer(string: "x"))
        }

        @Test("A later deadline is kept although the timer was set for an earlier one")
        func laterDeadline() async throws {
            let rig = try await Rig()
            let first = rig.onLoop { try await $0.read(by: $0.eventLoop.now + .seconds(10)) }
            await rig.settle()
            try await rig.arrive("x")
            _ = try await first.value
            let second = rig.onLoop { bytes in
                await #expect(throws: ChannelFault.self) {
                    try await bytes.read(by: bytes.eventLoop.now + .seconds(30))
                }
                return bytes.eventLoop.now
            }
            await rig.settle()
            for _ in 0..<6 { await rig.channel.testingEventLoop.advanceTime(by: .seconds(6)) }
            #expect(try await second.value == .uptimeNanoseconds(0) + .seconds(30))
        }

        @Test("Cancelling a read ends it at once and loses nothing", arguments: [true, false])
        func cancelsReads(onLoop: Bool) async throws {
            let rig = try await Rig()
            let bytes = rig.bytes
            let reader = onLoop ? rig.onLoop { try await $0.read() } : Task { try await bytes.read() }
            await rig.settle()
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            try await rig.arrive("x")
            #expect(try await bytes.read() == ByteBuffer(string: "x"))
        }

        @Test("A write waits only while the channel is not writable", arguments: [true, false])
        func writes(onLoop: Bool) async throws {
            let rig = try await Rig()
            let bytes = rig.bytes
            try await bytes.write(ByteBuffer(string: "a"))
            #expect(try await rig.sent() == "a")
            try await rig.setWritable(false)
            let written = CountWatch()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let writer =
                        onLoop
                        ? rig.onLoop { try await $0.write(ByteBuffer(string: "b")) }
                        : Task { try await bytes.write(ByteBuffer(string: "b")) }
                    try await writer.value
                    written.increment()
                }
                await rig.settle()
                #expect(written.count == 0)
                #expect(try await rig.sent() == "")
                try await rig.setWritable(true)
                try await group.waitForAll()
            }
            #expect(try await rig.sent() == "b")
        }

        @Test("A cancelled write sends nothing; a stalled one ends, and so does every later one")
        func endsWrites() async throws {
            let rig = try await Rig()
            try await rig.setWritable(false)
            let cancelled = rig.onLoop { try await $0.write(ByteBuffer(string: "a")) }
            await rig.settle()
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            let stalled = rig.onLoop { try await $0.write(ByteBuffer(string: "b"), stallLimit: .seconds(60)) }
            await rig.settle()
            await rig.channel.testingEventLoop.advanceTime(by: .seconds(61))
            await #expect(throws: ChannelFault.self) { try await stalled.value }
            try await rig.setWritable(true)
            let later = rig.onLoop { try await $0.write(ByteBuffer(string: "c")) }
            let fault = await #expect(throws: ChannelFault.self) { try await later.value }
            #expect(fault?.kind == .writeStalled)
            #expect(try await rig.sent() == "")
        }

        @Test("Closing wakes all waiters, and later calls fail at once")
        func closing() async throws {
            let rig = try await Rig()
            try await rig.setWritable(false)
            let reader = rig.onLoop { try await $0.read() }
            let writer = rig.onLoop { try await $0.write(ByteBuffer(string: "a")) }
            await rig.settle()
            rig.bytes.close()
            for waiting in [Task { _ = try await reader.value }, Task { try await writer.value }] {
                let fault = await #expect(throws: ChannelFault.self) { try await waiting.value }
                #expect(fault?.kind == .closed)
            }
            let fault = await #expect(throws: ChannelFault.self) { try await rig.bytes.read() }
            #expect(fault?.kind == .closed)
            await #expect(throws: ChannelFault.self) { try await rig.bytes.flush() }
        }

        @Test("A broken connection fails reads after the bytes that arrived, and notifies each observer once")
        func breaks() async throws {
            let rig = try await Rig()
            let told = CountWatch()
            rig.bytes.whenInputEnds { told.increment() }
            try await rig.arrive("a")
            let channel = rig.channel
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
            }
            await rig.settle()
            #expect(try await rig.bytes.read() == ByteBuffer(string: "a"))
            let fault = await #expect(throws: ChannelFault.self) { try await rig.bytes.read() }
            #expect(fault?.kind == .broken)
            #expect(fault?.cause is IOError)
            #expect(told.count == 1)
            rig.bytes.whenInputEnds { told.increment() }
            await rig.settle()
            #expect(told.count == 2)
        }

        @Test("Flushing ends when everything has been sent")
        func flushes() async throws {
            let rig = try await Rig()
            try await rig.onLoop { bytes in
                try await bytes.write(ByteBuffer(string: "a"))
                try await bytes.flush(stallLimit: .seconds(1))
            }.value
            #expect(try await rig.sent() == "a")
        }

        @Test("A client that takes a body over HTTP/2 slowly but steadily gets all of it; one that stops does not")
        func slowReader() async throws {
            let channel = NIOAsyncTestingChannel()
            let window = ClosedWindow()
            let bytes = try await channel.testingEventLoop.executeInContext {
                try channel.pipeline.syncOperations.addHandler(window.makeHandler())
                return try StreamBytes.attach(to: channel) { _, _, _ in }
            }
            try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).get()
            let writer = Task(executorPreference: EventLoopExecutor(channel.eventLoop)) {
                try await bytes.write(ByteBuffer(repeating: 0x78, count: 140_000), stallLimit: .seconds(2))
                try await bytes.flush(stallLimit: .seconds(2))
            }
            await channel.settle()
            // Eight pieces of 16 KiB and the rest.
            #expect(window.waiting == 9)
            for waiting in (1...8).reversed() {
                await channel.testingEventLoop.advanceTime(by: .milliseconds(1_500))
                window.open()
                await channel.settle()
                #expect(window.waiting == waiting && bytes.isActive)
            }
            window.open()
            try await writer.value

            let stalled = Task(executorPreference: EventLoopExecutor(channel.eventLoop)) {
                try await bytes.write(ByteBuffer(repeating: 0x78, count: 40_000), stallLimit: .seconds(2))
                try await bytes.flush(stallLimit: .seconds(2))
            }
            await channel.settle()
            window.open()
            await channel.settle()
            // What was taken before the deadline moves it once.
            for _ in 0..<4 { await channel.testingEventLoop.advanceTime(by: .seconds(1)) }
            let fault = await #expect(throws: ChannelFault.self) { try await stalled.value }
            #expect(fault?.kind == .writeStalled)
        }

        /// The writes that the window of a peer does not yet allow.
        private final class ClosedWindow: Sendable {
            private let promises = Mutex<[EventLoopPromise<Void>]>([])

            var waiting: Int { promises.withLock(\.count) }

            func makeHandler() -> some ChannelOutboundHandler { Handler(self) }

            /// The peer allows the oldest write.
            func open() { promises.withLock { $0.removeFirst() }.succeed() }

            private final class Handler: ChannelOutboundHandler {
                typealias OutboundIn = HTTP2Frame.FramePayload
                let window: ClosedWindow

                init(_ window: ClosedWindow) {
                    self.window = window
                }

                func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
                    if let promise { window.promises.withLock { $0.append(promise) } }
                }
            }
        }
    }
#endif
