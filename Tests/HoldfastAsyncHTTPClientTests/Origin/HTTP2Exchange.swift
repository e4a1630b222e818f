// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastTesting
    import NIOCore
    import NIOHPACK
    import NIOHTTP2
    import Synchronization

    /// One exchange of an ``HTTP2Origin``: a stream, from the request's head to the end of the reply.
    struct HTTP2Exchange: Sendable {
        /// Why an exchange ends before its reply does.
        private enum Ending: Error {
            case peer, script
        }

        private let connection: Int
        private let channel: any Channel
        private let script: HTTP2Script
        private let record: OriginRecord

        init(_ connection: Int, _ channel: any Channel, _ script: HTTP2Script, _ record: OriginRecord) {
            self.connection = connection
            self.channel = channel
            self.script = script
            self.record = record
        }

        /// Serves the stream to its end.
        func serve(_ stream: HTTP2Origin.Stream) async {
            try? await stream.executeThenClose { inbound, outbound in
                var frames = inbound.makeAsyncIterator()
                guard case .headers(let headers)? = try await frames.next() else { return }
                let head = request(headers.headers)
                record.begin(head)
                let ending = ExchangeEnding(connection, head.target, record)
                do {
                    var request = head
                    var intake = HTTP2Intake(script.script.intake(head), isWhole: headers.endStream)
                    while !intake.isWhole {
                        if intake.breaksOff { throw Ending.script }
                        if let gate = intake.gateInTheWay() {
                            gate.arrive()
                            try await gate.opened()
                        }
                        guard let frame = try await frames.next() else { throw Ending.peer }
                        intake.take(frame)
                    }
                    intake.fill(&request)
                    let whole = record.receive(request)
                    let playing = Task { await play(to: whole, outbound, ending) }
                    // What ends the stream ends its frames: the reply's end, or the peer, who needs no more of it.
                    while (try? await frames.next()) != nil {}
                    ending.note(Task.isCancelled ? .server : .peer)
                    playing.cancel()
                } catch Ending.script {
                    await breakOff(head.target, outbound)
                    ending.note(.server)
                } catch {
                    ending.note(Task.isCancelled ? .server : .peer)
                }
            }
        }

        private func play(
            to request: LoopbackRequest,
            _ outbound: NIOAsyncChannelOutboundWriter<HTTP2Frame.FramePayload>,
            _ ending: ExchangeEnding
        ) async {
            var writer = HTTP2Writer(script.script.handler(request), to: request, outbound, on: channel.eventLoop)
            do {
                if try await writer.write() {
                    ending.note(.completion)
                } else {
                    await breakOff(request.target, outbound)
                    ending.note(.server)
                }
            } catch {
                // The peer went away, which its frames tell.
            }
        }

        private func request(_ headers: HPACKHeaders) -> LoopbackRequest {
            var fields = headers.filter { !$0.name.hasPrefix(":") }.map { LoopbackField($0.name, value: $0.value) }
            if let authority = headers.first(name: ":authority") {
                fields.append(LoopbackField("host", value: authority))
            }
            return LoopbackRequest(
                connection: connection,
                method: headers.first(name: ":method") ?? "",
                target: headers.first(name: ":path") ?? "",
                version: "HTTP/2",
                fields: fields
            )
        }

        private func breakOff(
            _ target: String,
            _ outbound: NIOAsyncChannelOutboundWriter<HTTP2Frame.FramePayload>
        ) async {
            switch script.breaking(target) {
            case .reset(let code):
                try? await outbound.write(.rstStream(code))
            case .goAway:
                let payload = HTTP2Frame.FramePayload.goAway(
                    lastStreamID: .rootStream,
                    errorCode: .noError,
                    opaqueData: nil
                )
                try? await channel.writeAndFlush(HTTP2Frame(streamID: .rootStream, payload: payload))
                try? await channel.close()
            }
        }
    }

    /// Notes the end of one exchange, once.
    private final class ExchangeEnding: Sendable {
        private let connection: Int
        private let target: String
        private let record: OriginRecord
        private let isNoted = Atomic(false)

        init(_ connection: Int, _ target: String, _ record: OriginRecord) {
            self.connection = connection
            self.target = target
            self.record = record
        }

        func note(_ kind: LoopbackExchangeEnd.Kind) {
            guard !isNoted.exchange(true, ordering: .relaxed) else { return }
            record.end(LoopbackExchangeEnd(connection: connection, target: target, endedBy: kind))
        }
    }
#endif
