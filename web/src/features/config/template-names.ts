export interface TemplateValue { subject: string; text: string; html: string }

/** The mails whose texts can be replaced (contract M1). */
export const templates = [
  { name: 'external-user-email-verification', title: 'Verify the e-mail address', when: 'at registration in the mode svc_email, and on request', link: 'verify_url' },
  { name: 'external-user-password-reset', title: 'Reset the password', when: 'on request', link: 'reset_url' },
  { name: 'external-user-welcome', title: 'Welcome', when: 'after verification, when welcome mails are on', link: undefined },
] as const

/** variablesOf lists what a mail may contain. */
export function variablesOf(link: string | undefined): string[] { return ['name', 'tenant_name', 'app_url', ...(link ? [link] : [])] }
