// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The format of an image, by its media type.
public struct ImageFormat: Sendable, Hashable {
    /// The media type, such as `image/png`.
    public let contentType: String

    /// A format of this media type.
    public init(contentType: String) {
        self.contentType = contentType
    }

    /// PNG.
    public static let png = ImageFormat(contentType: "image/png")
    /// JPEG.
    public static let jpeg = ImageFormat(contentType: "image/jpeg")
    /// GIF.
    public static let gif = ImageFormat(contentType: "image/gif")
    /// WebP.
    public static let webP = ImageFormat(contentType: "image/webp")
    /// HEIC.
    public static let heic = ImageFormat(contentType: "image/heic")
    /// AVIF.
    public static let avif = ImageFormat(contentType: "image/avif")
    /// SVG.
    public static let svg = ImageFormat(contentType: "image/svg+xml")
}
