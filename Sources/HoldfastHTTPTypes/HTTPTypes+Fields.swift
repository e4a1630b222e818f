// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import HTTPTypes
    public import Holdfast
    public import HoldfastSemantics
#endif
