// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    public import Holdfast
    public import HoldfastSemantics
#endif
