import { checked } from "signing";

export default ({ link }) => ({ accepted: checked(link).total });
