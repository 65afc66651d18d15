// The provider of `openid start`: one client, PKCE required, and a page on which anybody signs in as anybody.
import { Provider } from "oidc-provider";

const issuer = `http://127.0.0.1:${process.argv[2]}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: "lakehub-tests",
    client_secret: "a secret of 32 characters or more",
    redirect_uris: ["http://127.0.0.1:8000/sign-in/single-sign-on/back"],
    post_logout_redirect_uris: ["http://127.0.0.1:8000/sign-in"],
  }],
  claims: { openid: ["sub"], profile: ["preferred_username", "given_name", "groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false, // the claims of the scopes are in the ID token
  pkce: { required: () => true },
  cookies: { keys: ["of the tests"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      preferred_username: id,
      given_name: "Inês",
      email: `${id}@example.org`,
      email_verified: true,
      groups: ["analysts"],
    }),
  }),
});
provider.listen(Number(process.argv[2]), "127.0.0.1");
