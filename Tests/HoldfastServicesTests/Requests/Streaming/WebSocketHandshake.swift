// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting

/// The server's half of a WebSocket, as far as a scripted reply can play it: the handshake, and frames that it sends.
enum WebSocketHandshake {
    /// Answers the handshake, sends frames, and waits for the peer to leave.
    static func reply(to request: LoopbackRequest, frames: [[UInt8]]) -> LoopbackReply {
        guard let key = request.values(of: "Sec-WebSocket-Key").first else { return LoopbackReply(400) }
        return LoopbackReply(
            101,
            fields: [
                ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept(key)),
            ],
            framing: .bare,
            steps: frames.map { .send($0) } + [.never]
        )
    }

    /// A text message in one frame (RFC 6455 §5.2), shorter than 126 bytes.
    static func text(_ text: String) -> [UInt8] {
        [0x81, UInt8(text.utf8.count)] + Array(text.utf8)
    }

    /// A Close frame (§5.5.1).
    static func close(_ code: UInt16, _ reason: String) -> [UInt8] {
        [0x88, UInt8(reason.utf8.count + 2), UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8)
    }

    /// What proves that the server read the key (§4.2.2).
    static func accept(_ key: String) -> String {
        Data(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))).base64EncodedString()
    }

    /// SHA-1 (RFC 3174), for the handshake alone.
    private static func sha1(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        let bitCount = UInt64(message.count) * 8
        padded += (0..<8).reversed().map { UInt8(truncatingIfNeeded: bitCount >> (8 * UInt64($0))) }
        for start in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { index in
                padded[(start + index * 4)..<(start + index * 4 + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<80 {
                words.append(
                    rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1)
                )
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for index in 0..<80 {
                let (mix, constant): (UInt32, UInt32) =
                    switch index {
                    case ..<20: ((b & c) | (~b & d), 0x5A82_7999)
                    case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                    case ..<60: ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                (a, b, c, d, e) = (
                    rotated(a, by: 5) &+ mix &+ e &+ constant &+ words[index], a, rotated(b, by: 30), c, d
                )
            }
            for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
        }
        return state.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> (8 * UInt32($0))) } }
    }

    private static func rotated(_ word: UInt32, by count: UInt32) -> UInt32 {
        word << count | word >> (32 - count)
    }
}
