"""The structure of the product, checked: layers, folders, circles, names, and the path of one commit."""
