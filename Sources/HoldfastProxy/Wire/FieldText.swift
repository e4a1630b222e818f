// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// Field values as bytes and as text: each byte is one scalar from U+0000 to U+00FF (ISO 8859-1), both ways.
    ///
    /// What arrived is so sent on byte for byte (RFC 9110 §5.5).
    package enum FieldText {
        /// The text of bytes off the wire; costs one pass, and no more than a copy where they are ASCII.
        package static func string(_ bytes: UnsafeRawBufferPointer) -> String {
            guard let base = bytes.baseAddress, bytes.count > 0 else { return "" }
            var highBytes = 0
            for byte in bytes { highBytes &+= Int(byte >> 7) }
            let count = bytes.count
            return String(unsafeUninitializedCapacity: count + highBytes) { text in
                guard let target = text.baseAddress else { return 0 }
                guard highBytes > 0 else {
                    UnsafeMutableRawPointer(target).copyMemory(from: base, byteCount: count)
                    return count
                }
                var written = 0
                for byte in bytes {
                    if byte < 0x80 {
                        target[written] = byte
                        written += 1
                    } else {
                        target[written] = 0xC0 | byte >> 6
                        target[written + 1] = 0x80 | byte & 0x3F
                        written += 2
                    }
                }
                return written
            }
        }

        /// Writes the bytes of a text to `target`, which must have room for the text's UTF-8, and answers how many they are.
        ///
        /// A scalar above U+00FF, which cannot have come off the wire, is written as UTF-8.
        package static func write(_ text: String, to target: UnsafeMutableRawPointer) -> Int {
            var text = text
            return text.withUTF8 { utf8 in
                guard let base = utf8.baseAddress else { return 0 }
                var combined: UInt8 = 0
                for byte in utf8 { combined |= byte }
                guard combined >= 0x80 else {
                    target.copyMemory(from: base, byteCount: utf8.count)
                    return utf8.count
                }
                var written = 0
                var index = 0
                while index < utf8.count {
                    let byte = utf8[index]
                    if byte & 0xFE == 0xC2, index + 1 < utf8.count {
                        // U+0080 to U+00FF are the two-byte forms that begin with C2 and C3.
                        target.storeBytes(of: byte << 6 | utf8[index + 1] & 0x3F, toByteOffset: written, as: UInt8.self)
                        index += 2
                    } else {
                        target.storeBytes(of: byte, toByteOffset: written, as: UInt8.self)
                        index += 1
                    }
                    written += 1
                }
                return written
            }
        }

        /// The bytes of a text as they are sent.
        package static func bytes(_ text: String) -> [UInt8] {
            let room = text.utf8.count
            return [UInt8](unsafeUninitializedCapacity: room) { target, count in
                guard let base = target.baseAddress else { return }
                count = write(text, to: UnsafeMutableRawPointer(base))
            }
        }
    }
#endif
