// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Text of JSON values (RFC 8259), for reports too simple to need an encoder.
public enum JSONText {
    /// A string in quotation marks; quotation marks, backslashes and control characters are escaped (§7).
    public static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// A number (§6) with at most this many decimal places, 0 ... 9; NaN and infinity become null.
    public static func number(_ value: Double, places: Int = 3) -> String {
        guard value.isFinite else { return "null" }
        let places = min(max(places, 0), 9)
        let scale = (0..<places).reduce(1) { scale, _ in scale * 10 }
        let scaled = (value * Double(scale)).rounded()
        guard abs(scaled) < 9_000_000_000_000_000 else { return "\(value)" }
        let whole = Int(scaled)
        if whole % scale == 0 { return "\(whole / scale)" }
        var digits = String(abs(whole) % scale)
        digits = String(repeating: "0", count: places - digits.count) + digits
        while digits.hasSuffix("0") { digits.removeLast() }
        return (whole < 0 ? "-" : "") + "\(abs(whole) / scale).\(digits)"
    }
}
