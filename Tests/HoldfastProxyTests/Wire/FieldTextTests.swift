// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastTesting
    import Testing

    @Suite("Field values as ISO 8859-1 (B15)")
    struct FieldTextTests {
        @Test("Each byte is one scalar and is converted back to itself")
        func allBytes() {
            let bytes = (0...255).map { UInt8($0) }
            let text = bytes.withUnsafeBytes { FieldText.string($0) }
            #expect(text.unicodeScalars.map(\.value) == (0...255).map { UInt32($0) })
            #expect(FieldText.bytes(text) == bytes)
        }

        @Test("Random bytes of all lengths survive the conversion both ways", arguments: [11, 12, 13] as [UInt64])
        func random(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            for count in 0..<80 {
                let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                #expect(FieldText.bytes(bytes.withUnsafeBytes { FieldText.string($0) }) == bytes, "seed \(seed)")
            }
        }

        @Test("A scalar beyond a byte is written as UTF-8")
        func beyond() {
            #expect(FieldText.bytes("aé→") == [0x61, 0xE9, 0xE2, 0x86, 0x92])
        }
    }

    extension FieldText {
        /// The bytes of a text as they are sent.
        static func bytes(_ text: String) -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: text.utf8.count) { target, count in
                guard let base = target.baseAddress else { return }
                count = write(text, to: UnsafeMutableRawPointer(base))
            }
        }
    }
#endif
