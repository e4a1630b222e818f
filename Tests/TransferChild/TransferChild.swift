// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

@main
struct TransferChild {
    static func main() {}
}
