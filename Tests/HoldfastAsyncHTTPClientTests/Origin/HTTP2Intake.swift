// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastTesting
    import NIOCore
    import NIOHTTP2

    /// Takes the content of one request, as the script's intake says.
    struct HTTP2Intake {
        private let intake: LoopbackIntake
        private var content = TransferPattern.Checker()
        private var kept: [UInt8] = []
        private var hasPassedGate = false
        /// Whether the content is there to its end.
        private(set) var isWhole: Bool

        init(_ intake: LoopbackIntake, isWhole: Bool) {
            self.intake = intake
            self.isWhole = isWhole
        }

        /// Whether the script ends the exchange here.
        var breaksOff: Bool {
            if case .breakOff(let limit, _) = intake.kind { content.count >= limit } else { false }
        }

        /// The gate to wait at before the next frame, once.
        mutating func gateInTheWay() -> LoopbackGate? {
            guard !hasPassedGate, case .hold(let limit, let gate) = intake.kind, content.count >= limit else {
                return nil
            }
            hasPassedGate = true
            return gate
        }

        mutating func take(_ frame: HTTP2Frame.FramePayload) {
            switch frame {
            case .headers(let trailers):
                isWhole = trailers.endStream
            case .data(let data):
                if case .byteBuffer(let buffer) = data.data {
                    buffer.withUnsafeReadableBytes { content.read($0) }
                    if case .keep = intake.kind { kept += buffer.readableBytesView }
                }
                isWhole = data.endStream
            default:
                break
            }
        }

        /// Writes down what came.
        func fill(_ request: inout LoopbackRequest) {
            if case .keep = intake.kind { request.body = kept } else { request.content = content }
        }
    }
#endif
