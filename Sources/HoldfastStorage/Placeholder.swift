// placeholder while the skeleton stands alone
