"""Single sign-on by OpenID Connect: the provider, the way there and back, and who comes back."""
