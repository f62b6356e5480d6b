export default function handler(inputs) {
  return 1;
} !!error
