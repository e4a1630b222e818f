// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastServices

#if XML
    extension InputFormat {
        /// XML in the content, as `text/xml` in UTF-8, encoded by XMLCoder.
        ///
        /// Set up the encoder with ``XMLConfiguring``.
        ///
        /// - Parameter rootNode: the name of the outermost element.
        public static func XML(rootNode: String) -> InputFormat {
            InputFormat(name: "XML", encoder: XMLBody(rootNode: rootNode))
        }
    }

    extension OutputFormat {
        /// XML, decoded by XMLCoder, within the default ``XMLLimits``; requests have `Accept: text/xml`.
        ///
        /// Document type declarations are rejected, so the only entities are the five of XML itself. Malformed XML, or XML
        /// beyond the limits, is an error and never a trap. Set up the decoder with ``XMLConfiguring``.
        public static let XML = OutputFormat.XML(limits: XMLLimits())

        /// The same as ``XML``, within other limits.
        public static func XML(limits: XMLLimits) -> OutputFormat {
            OutputFormat(name: "XML", accept: "text/xml", decoder: XMLBody(limits: limits))
        }
    }
#else
    extension InputFormat {
        /// XML in the content; needs the package trait `XML`.
        @available(
            *,
            unavailable,
            message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
        )
        public static func XML(rootNode: String) -> InputFormat { .JSON }
    }

    extension OutputFormat {
        /// XML; needs the package trait `XML`.
        @available(
            *,
            unavailable,
            message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
        )
        public static var XML: OutputFormat { .JSON }
    }
#endif
