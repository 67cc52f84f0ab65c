// TapNetwork
