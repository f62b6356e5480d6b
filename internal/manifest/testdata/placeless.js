!!placeless
